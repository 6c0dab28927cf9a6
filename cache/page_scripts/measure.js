// How much text a page shows, how tall it is, whether it says that it is still loading, how many frames it shows, and
// for how many milliseconds an animation still hides all of it. Reads only.
() => {
  const BUSY = `[aria-busy="true"], [role="progressbar"], [class*="skeleton" i], [class*="spinner" i],
    [class*="loading" i], [class*="loader" i]`;
  const LOADING = /^(?:skeletons?|spinners?|loading|loader)$/i;
  const SCROLLERS = "body, main, body > div, body > div > div, [role=main]";
  const SAYS = /(?:loading|please wait|wird geladen|chargement|cargando|caricamento)\s*(?:\.{2,}|\u2026)/i;
  const root = document.scrollingElement || document.documentElement;
  if (!root) return { chars: 0, height: 0, inner: 0, waiting: false, frames: 0, hiddenMs: 0 };
  // Laying out what can be seen takes long on a huge page, where the difference does not matter.
  const whole = document.body ? document.body.textContent : "";
  const text = whole.length > 300000 ? whole : document.body ? document.body.innerText : "";
  const isShown = (el) => {
    const box = el.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && el.checkVisibility();
  };
  // A class counts by its whole words: "uploader-icon" is no loader, "page-loader" is one.
  const words = (name) => name.split(/[-_]+|(?<=[a-z])(?=[A-Z])/);
  const isNamed = (el) => el.matches('[aria-busy="true"], [role="progressbar"]') ||
    [...el.classList].some((name) => words(name).some((word) => LOADING.test(word)) && !/lazy/i.test(name));
  // A mark of loading is small: a list that is merely called "loading" and holds something is no mark.
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
  return { chars: text.trim().length, height: root.scrollHeight, inner, waiting, frames, hiddenMs };
}
