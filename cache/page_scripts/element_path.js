// Position of an element in its document: its path from the root, which is equal in all worlds. Read-only.
(el) => {
  const steps = [];
  for (let at = el; at && at.parentNode; at = at.parentNode.host || at.parentNode) {
    const step = Array.prototype.indexOf.call(at.parentNode.childNodes, at);
    steps.push(at.parentNode.host ? `shadow${step}` : step);
  }
  return steps.reverse().join(".");
}
