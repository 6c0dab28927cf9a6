// Consent dialogs: dialogs and floating elements that ask for consent, by their names or wording. Read-only.
(root, floats, squeeze, patterns) => {
  const NAMES = new RegExp(patterns.names, "i"), WORDS = new RegExp(patterns.words, "iu");
  const COVERING_PX = 0.25 * 1280 * 800;  // a quarter of a window; a bar is smaller
  const MAX_CHARS = 6000, MAX_OVERLAY_CHARS = 3000;  // more is the content of a page
  const CONTENT = "main, article, [role=main], input[type=password]", MEDIA = "img, picture, video, canvas, svg, iframe, object, embed";
  const CONTROLS = "button, [role=button], input[type=submit], input[type=button], a";
  const textOf = (el) => squeeze(el.innerText || "");
  const isDialog = (el) => el.matches("dialog[open], [aria-modal=true]") || /dialog$/.test(el.getAttribute("role") || "");
  const hostOf = (el) => { try { return new URL(el.src).hostname; } catch { return ""; } };
  const hasConsentName = (el) => NAMES.test(`${el.id} ${el.getAttribute("class") || ""}`) ||
    (el.tagName === "IFRAME" && NAMES.test(`${el.title} ${el.name} ${hostOf(el)}`));
  // Whether an element or one of its ancestors, also outside its shadow root, is named after consent.
  const isInConsentElement = (el) => {
    for (let at = el; at && at !== root; at = at.parentElement || (at.getRootNode() || {}).host) if (hasConsentName(at)) return true;
    return false;
  };
  const isContent = (el, maxChars) => el === root || el.matches(CONTENT) || el.querySelector(CONTENT) !== null || textOf(el).length > maxChars;
  const saysConsent = (el) => WORDS.test(textOf(el).slice(0, patterns.within)) && el.querySelector(CONTROLS) !== null && !isContent(el, MAX_OVERLAY_CHARS);
  const asksForConsent = (el) => hasConsentName(el) ||
    (isDialog(el) && (NAMES.test(el.innerHTML.slice(0, 2000)) || isInConsentElement(el) || saysConsent(el)));
  const isPlacedOver = (el) => { const style = getComputedStyle(el); return style.position === "fixed" || (style.position === "absolute" && parseInt(style.zIndex) > 0); };
  const floatsOver = (el) => {
    for (let at = el; at && at !== root; at = at.parentElement || (at.getRootNode() || {}).host) if (isPlacedOver(at)) return true;
    return floats(el);
  };
  const area = (el) => {
    const rect = el.getBoundingClientRect();
    return Math.max(0, Math.min(rect.right, innerWidth) - Math.max(rect.left, 0)) * Math.max(0, Math.min(rect.bottom, innerHeight) - Math.max(rect.top, 0));
  };
  const covers = (el) => [el, ...[...el.querySelectorAll("*")].slice(0, 200)].some((at) => area(at) >= COVERING_PX);

  const named = (places) => places.flatMap((place) => [...place.querySelectorAll("[id], [class], iframe, dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true]")])
    .filter((el) => el !== root && asksForConsent(el) && el.getClientRects().length && (isDialog(el) || floatsOver(el)));
  const ROWS = [100, 300, 500, 700, innerHeight / 2, innerHeight - 100];
  // Elements over the page without a telling name or role.
  const overlays = () => {
    const found = new Set(), checked = new Set();
    for (const y of ROWS) for (const x of [0.1, 0.5, 0.9]) {
      let at = document.elementFromPoint(x * innerWidth, y);
      while (at && at !== root && !found.has(at) && !checked.has(at)) {
        checked.add(at);
        if (isPlacedOver(at) && covers(at) && saysConsent(at)) found.add(at);
        else at = at.parentElement;
      }
    }
    return [...found];
  };
  const outermost = (found) => found.filter((el) => !found.some((other) => other !== el && other.contains(el)));
  // The element with those around it that show nothing else, for example a darkened background.
  const withBackground = (el) => {
    let at = el;
    for (let outer = at.parentElement; outer && outer !== root && isPlacedOver(outer) && textOf(outer) === textOf(at) &&
      [...outer.querySelectorAll(MEDIA)].every((media) => at.contains(media)); outer = outer.parentElement) at = outer;
    return at;
  };
  const isBackground = (el) => el !== root && isPlacedOver(el) && area(el) >= 0.9 * innerWidth * innerHeight && !textOf(el) &&
    !el.matches(MEDIA) && !el.querySelector(MEDIA) && !/, 0\)$|transparent|url\(/.test(`${getComputedStyle(el).backgroundColor} ${getComputedStyle(el).backgroundImage}`);
  const find = (places) => {
    const found = [...new Set([...named(places), ...overlays()])];
    const chars = outermost(found).reduce((sum, el) => sum + textOf(el).length, 0);
    const dialogs = outermost(found).filter((el) => !isContent(el, MAX_CHARS)).map(withBackground);
    const backgrounds = dialogs.length ? document.elementsFromPoint(innerWidth / 2, innerHeight / 2).filter(isBackground) : [];
    return { chars, covers: backgrounds.length > 0 || dialogs.some(covers), elements: [...dialogs, ...backgrounds] };
  };
  return { find, asksIn: (frame) => isInConsentElement(frame) && floatsOver(frame), mayAskIn: (frame) => floatsOver(frame) && area(frame) >= COVERING_PX };
}
