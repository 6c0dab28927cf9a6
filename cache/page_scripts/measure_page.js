// Measures of a page: length of its text, height, loading indicators, number of visible frames, the remaining
// milliseconds of an animation that hides the whole page, whether it is an automatic check of the browser, whether it is
// loaded, and its clock. Read-only.
() => {
  const BUSY = `[aria-busy="true"], [role="progressbar"], [class*="skeleton" i], [class*="spinner" i],
    [class*="loading" i], [class*="loader" i]`;
  const LOADING = /^(?:skeletons?|spinners?|loading|loader)$/i;
  const SCROLLERS = "body, main, body > div, body > div > div, [role=main]";
  const SAYS = /(?:loading|please wait|wird geladen|chargement|cargando|caricamento)\s*(?:\.{2,}|\u2026)/i;
  const CHECK = /^(?:just a moment|one moment|checking (?:your|the) browser|verifying you are human|ddos-guard|attention required)/i;
  const root = document.scrollingElement || document.documentElement;
  const loaded = document.readyState === "complete";
  const now = Date.now();
  if (!root) return { chars: 0, height: 0, inner: 0, waiting: false, frames: 0, hiddenMs: 0, checking: false, loaded, now };
  // innerText is slow on a huge page. There, the difference to textContent does not matter.
  const whole = document.body ? document.body.textContent : "";
  const text = whole.length > 300000 ? whole : document.body ? document.body.innerText : "";
  const isShown = (el) => {
    const box = el.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && el.checkVisibility();
  };
  // Compare whole words of a class: "uploader-icon" is not a loader, "page-loader" is one.
  const words = (name) => name.split(/[-_]+|(?<=[a-z])(?=[A-Z])/);
  const isNamed = (el) => el.matches('[aria-busy="true"], [role="progressbar"]') ||
    [...el.classList].some((name) => words(name).some((word) => LOADING.test(word)) && !/lazy/i.test(name));
  // A loading indicator is small: a list with content whose class is "loading" is not one.
  const isBusy = (el) =>
    el.tagName !== "IMG" && isNamed(el) && el.textContent.trim().length < 60 && !el.querySelector("img") && isShown(el);
  const busy = [...document.querySelectorAll(BUSY)].slice(0, 200).some(isBusy);
  let inner = 0;
  for (const el of document.querySelectorAll(SCROLLERS)) {
    const scrolls = /auto|scroll/.test(getComputedStyle(el).overflowY) && el.clientHeight > innerHeight / 2;
    if (scrolls) inner = Math.max(inner, el.scrollHeight - el.clientHeight);
  }
  const remaining = (animation) => {
    const { endTime } = animation.effect ? animation.effect.getComputedTiming() : { endTime: 0 };
    return Number.isFinite(+endTime) ? endTime - (animation.currentTime || 0) : 0;
  };
  const isHidden = (el) => { const style = getComputedStyle(el); return style.visibility === "hidden" || +style.opacity === 0; };
  const hiders = [document.documentElement, document.body].filter((el) => el && isHidden(el));
  const hiddenMs = Math.max(0, ...hiders.flatMap((el) => el.getAnimations().map(remaining)));
  const frames = [...document.querySelectorAll("iframe, frame")].slice(0, 20).filter(isShown).length;
  const waiting = busy || (text.length < 3000 && SAYS.test(text));
  const checking = text.length < 3000 && CHECK.test(document.title.trim());
  return { chars: text.trim().length, height: root.scrollHeight, inner, waiting, frames, hiddenMs, checking, loaded, now };
}
