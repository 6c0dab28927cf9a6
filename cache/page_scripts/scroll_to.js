// Scroll to a position and send scroll and resize events. Return the page's height immediately afterwards.
(top) => {
  window.scrollTo(0, top);
  for (const [target, kind] of [[window, "resize"], [document, "scroll"], [window, "scroll"]]) {
    target.dispatchEvent(new Event(kind, { bubbles: true }));
  }
  const root = document.scrollingElement || document.documentElement;
  return root ? root.scrollHeight : 0;
}
