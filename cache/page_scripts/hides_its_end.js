// Whether text near the end of the page is transparent or invisible, for example until it is scrolled into view. Read-only.
() => {
  const MAX_ELEMENTS = 2000;
  const all = document.getElementsByTagName("*");
  for (let n = all.length - 1; n >= Math.max(0, all.length - MAX_ELEMENTS); n -= 1) {
    const el = all[n];
    if (el.childElementCount || !el.textContent.trim() || el.getBoundingClientRect().height < 3) continue;
    if (!el.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return true;
  }
  return false;
}
