// How often text came, went or changed since this was asked last; the first time nothing, and from then on it counts.
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
