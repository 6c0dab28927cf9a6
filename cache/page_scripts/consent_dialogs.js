// Consent dialogs: length of the text in dialogs and floating elements that ask for consent. Read-only.
(root, floats, squeeze) => {
  const CONSENT = /cookie|consent|gdpr|onetrust|didomi|usercentrics|truste|sp_message|iubenda|qc-cmp|cmpbox|cmp-/i;
  const isDialog = (el) => /dialog$/.test(el.getAttribute("role") || "");
  const hasConsentName = (el) => CONSENT.test(`${el.id} ${el.getAttribute("class") || ""}`);
  // Whether an element or one of its ancestors, also outside its shadow root, is named after consent.
  const isInConsentElement = (el) => {
    for (let at = el; at && at !== root; at = at.parentElement || (at.getRootNode() || {}).host) if (hasConsentName(at)) return true;
    return false;
  };
  const asksForConsent = (el) => hasConsentName(el) || (isDialog(el) && (CONSENT.test(el.innerHTML.slice(0, 2000)) || isInConsentElement(el)));
  const chars = (places) => {
    const found = places.flatMap((place) => [...place.querySelectorAll("[id], [class], [role=dialog], [role=alertdialog]")])
      .filter((el) => el !== root && asksForConsent(el) && el.getClientRects().length && (isDialog(el) || floats(el)));
    const outer = found.filter((el) => !found.some((other) => other !== el && other.contains(el)));
    return outer.reduce((sum, el) => sum + squeeze(el.innerText || "").length, 0);
  };
  return { chars, asksIn: (frame) => isInConsentElement(frame) && floats(frame) };
}
