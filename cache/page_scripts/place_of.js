// Where an element stands in its document: the way from the top, the same seen from any world. Reads only.
(el) => {
  const steps = [];
  for (let at = el; at && at.parentNode; at = at.parentNode.host || at.parentNode) {
    const step = Array.prototype.indexOf.call(at.parentNode.childNodes, at);
    steps.push(at.parentNode.host ? `shadow${step}` : step);
  }
  return steps.reverse().join(".");
}
