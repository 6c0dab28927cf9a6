// Return how often text was added, removed or changed since the last call. The first call starts counting and returns 0.
() => {
  const count = globalThis.__assayChanges || (globalThis.__assayChanges = { seen: 0, watch: null });
  if (!count.watch) {
    count.watch = new MutationObserver((found) => { count.seen += found.length; });
    count.watch.observe(document, { childList: true, characterData: true, subtree: true });
  }
  const seen = count.seen;
  count.seen = 0;
  return seen;
}
