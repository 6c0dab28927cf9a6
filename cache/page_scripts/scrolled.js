// Scroll to a place and tell the page that it was scrolled and resized; the page's height right after.
(top) => {
  window.scrollTo(0, top);
  for (const [target, kind] of [[window, "resize"], [document, "scroll"], [window, "scroll"]]) {
    target.dispatchEvent(new Event(kind, { bubbles: true }));
  }
  const root = document.scrollingElement || document.documentElement;
  return root ? root.scrollHeight : 0;
}
