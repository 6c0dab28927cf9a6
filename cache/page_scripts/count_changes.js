// Return how often text was added, removed or changed since the first call, after a number of frames.
(frames) => new Promise((resolve) => {
  const count = globalThis.__assayChanges || (globalThis.__assayChanges = { seen: 0, watch: null });
  if (!count.watch) {
    count.watch = new MutationObserver((found) => { count.seen += found.length; });
    count.watch.observe(document, { childList: true, characterData: true, subtree: true });
  }
  const next = () => {
    if (frames-- > 0) {
      requestAnimationFrame(next);
      return;
    }
    const seen = count.seen;
    count.seen = 0;
    resolve(seen);
  };
  next();
})
