// Hide or show the texts and frames that visible_text.js found covered. Screenshots with and without them show whether
// they are visible. A highlight hides text, because it changes only the text's own pixels and the page cannot detect it.
(hide) => {
  const NAME = "assay-covered";
  const covered = globalThis.__assayCovered || [];
  if (!globalThis.__assayHighlight) {
    const sheet = (globalThis.__assayHighlight = new CSSStyleSheet());
    const clear = ["color", "-webkit-text-fill-color", "-webkit-text-stroke-color", "text-decoration-color", "fill", "stroke"];
    sheet.replaceSync(`::highlight(${NAME}) { ${clear.map((name) => `${name}: transparent !important`).join(";")}; text-shadow: none !important }`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }
  const ranges = [];
  for (const each of covered) {
    if (each.hider) each.hider.cancel();
    each.hider = null;
    if (each.node.nodeType === Node.TEXT_NODE) {
      const range = document.createRange();
      range.selectNodeContents(each.node);
      ranges.push(range);
    } else if (hide) {
      each.hider = each.node.animate([{ opacity: 0 }, { opacity: 0 }], { duration: 1e9, fill: "both" });
      each.hider.pause();
    }
  }
  if (hide) CSS.highlights.set(NAME, new Highlight(...ranges));
  else CSS.highlights.delete(NAME);
  return covered.length;
}
