// Scroll to a position, send scroll and resize events, and wait for a frame. Return the page's height before the frame.
(top) => {
  const height = /* include scroll_to */(top);
  return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(height))));
}
