// How much a page shows and how tall it is, and whether it says that it is still loading. Reads only.
() => {
  const BUSY = `[aria-busy="true"], [role="progressbar"], [class*="skeleton" i], [class*="spinner" i],
    [class*="loading" i], [class*="loader" i]`;
  const SCROLLERS = "body, main, body > div, body > div > div, [role=main]";
  const SAYS = /(?:loading|please wait|wird geladen|chargement|cargando|caricamento)\s*(?:\.{2,}|\u2026)/i;
  const root = document.scrollingElement || document.documentElement;
  if (!root) return { chars: 0, height: 0, inner: 0, waiting: false };
  // Laying out what can be seen takes long on a huge page, where the difference does not matter.
  const whole = document.body ? document.body.textContent : "";
  const text = whole.length > 300000 ? whole : document.body ? document.body.innerText : "";
  const isShown = (el) => {
    const box = el.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && el.checkVisibility();
  };
  // A mark of loading is small: a list that is merely called "loading" and holds something is no mark.
  const isBusy = (el) =>
    el.tagName !== "IMG" && el.textContent.trim().length < 60 && !el.querySelector("img") && isShown(el);
  const busy = [...document.querySelectorAll(BUSY)].slice(0, 200).some(isBusy);
  let inner = 0;
  for (const el of document.querySelectorAll(SCROLLERS)) {
    const scrolls = /auto|scroll/.test(getComputedStyle(el).overflowY) && el.clientHeight > innerHeight / 2;
    if (scrolls) inner = Math.max(inner, el.scrollHeight - el.clientHeight);
  }
  const waiting = busy || (text.length < 3000 && SAYS.test(text));
  return { chars: text.trim().length, height: root.scrollHeight, inner, waiting };
}
