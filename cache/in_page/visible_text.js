// What a person would read on this document, in reading order, as plain text with markdown headings, lists and
// table rows. Text that is in the document but cannot be seen is collected apart. Runs in an isolated world;
// reads only. Frames leave a mark in the text; their elements wait in globalThis.__assayFrames.
(limits) => {
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "DATALIST", "CANVAS", "VIDEO", "AUDIO",
    "OBJECT", "EMBED", "MAP", "META", "LINK", "TITLE", "DESC"]);
  const SPACED = new Set(["P", "UL", "OL", "DL", "TABLE", "BLOCKQUOTE", "PRE", "FIGURE", "SECTION", "ARTICLE", "HR",
    "H1", "H2", "H3", "H4", "H5", "H6", "FORM", "FIELDSET", "DETAILS"]);
  const CONSENT = /cookie|consent|gdpr|onetrust|didomi|usercentrics|truste|sp_message|qc-cmp|cmpbox|cmp-/i;
  const MIN_FONT_PX = 4, MIN_OPACITY = 0.1, MIN_CONTRAST = 10, BIG_IMAGE_PX = 150;
  const started = performance.now();
  const sx = window.scrollX, sy = window.scrollY;
  const root = document.body || document.documentElement;
  const pageWidth = Math.max(document.documentElement ? document.documentElement.scrollWidth : 0, window.innerWidth);
  const frames = (globalThis.__assayFrames = []);
  const hidden = [], links = [], headlines = [];
  const facts = { hasPasswordField: false, loginFormChars: 0, consentChars: 0, inputs: 0, largeImages: 0 };
  let visited = 0, hitTests = 0, truncated = false, chars = 0;

  const squeeze = (text) => text.replace(/[\s\u00a0]+/g, " ").trim();

  // ---- what is written: lines with at most one blank line between them -------------------------------------
  class Writer {
    constructor(oneLine) { this.lines = []; this.line = ""; this.prefix = ""; this.oneLine = oneLine; this.blank = false; }
    text(text, pre) {
      if (pre && !this.oneLine) {
        const parts = text.split("\n");
        parts.forEach((part, n) => { if (n) this.end(); this.line += part; });
        return;
      }
      let flat = text.replace(/[ \t\r\n\f\u00a0]+/g, " ");
      if (!this.line || this.line.endsWith(" ")) flat = flat.replace(/^ /, "");
      this.line += flat;
    }
    end() {
      if (this.oneLine) { if (this.line && !this.line.endsWith(" ")) this.line += " "; return; }
      const text = this.line.replace(/\s+$/, "");
      this.line = "";
      if (!text) return;
      if (this.blank && this.lines.length) this.lines.push("");
      this.blank = false;
      this.lines.push(this.prefix + text);
      this.prefix = this.prefix.replace(/\S/g, " ");
      chars += text.length;
    }
    space() { this.end(); this.blank = true; }
    value() { this.end(); return this.oneLine ? squeeze(this.line) : this.lines.join("\n"); }
  }

  // ---- what can be seen ------------------------------------------------------------------------------------
  const rgba = (css) => {
    const found = /rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)/.exec(css);
    return found ? [+found[1], +found[2], +found[3], found[4] === undefined ? 1 : +found[4]] : null;
  };
  const near = (one, other) => one && other && [0, 1, 2].every((n) => Math.abs(one[n] - other[n]) < MIN_CONTRAST);
  const clipped = (style) =>
    (/absolute|fixed/.test(style.position) && /rect\((?:0px|1px),? (?:0px|1px),? (?:0px|1px),? (?:0px|1px)\)/.test(style.clip)) ||
    /inset\((?:[5-9]\d|100)(?:\.\d+)?%|circle\(0(?:px|%)?(?: |\))|polygon\(0(?:px)? 0(?:px)?, 0(?:px)? 0(?:px)?/.test(style.clipPath);
  const opaque = (el, style) => {
    if (/^(IMG|VIDEO|CANVAS|IFRAME)$/.test(el.tagName) || style.backgroundImage !== "none") return true;
    const colour = rgba(style.backgroundColor);
    return colour !== null && colour[3] >= 0.9;
  };
  const floats = (el) => {
    for (let at = el; at && at !== document.documentElement; at = at.parentElement || (at.getRootNode() || {}).host) {
      if (/fixed|sticky/.test(getComputedStyle(at).position) || at.tagName === "DIALOG" || at.getAttribute("role") === "dialog") return true;
    }
    return false;
  };
  const holds = (outer, el) => outer === el || outer.contains(el);
  const inWindow = (x, y) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

  // An opaque box that is neither around the text nor a floating banner, and lies over all of it.
  const covered = (el, rect) => {
    if (hitTests++ > limits.hitTests) return false;
    const y = rect.top + rect.height / 2;
    return [0.1, 0.5, 0.9].every((share) => {
      const x = rect.left + rect.width * share;
      const top = inWindow(x, y) ? document.elementFromPoint(x, y) : null;
      if (!top || holds(top, el) || el.getRootNode() !== document) return false;
      return opaque(top, getComputedStyle(top)) && !floats(top);
    });
  };
  // Text in its background's colour, unless something else is drawn between the two.
  const blends = (el, rect, context, style) => {
    const ink = rgba(style.webkitTextFillColor || style.color);
    if (!ink) return false;
    if (ink[3] < MIN_OPACITY) return !(context.clipText || style.textShadow !== "none" || parseFloat(style.webkitTextStrokeWidth) > 0);
    if (!near(ink, context.background) || style.textShadow !== "none") return false;
    const x = rect.left + rect.width / 2, y = rect.top + rect.height / 2;
    const stack = inWindow(x, y) ? document.elementsFromPoint(x, y) : [];
    return !stack.some((under) => !holds(under, el) && opaque(under, getComputedStyle(under)));
  };
  const seenRect = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      if (rect.width >= 1 && rect.height >= 3 && rect.right + sx > 0 && rect.bottom + sy > 0 && rect.left + sx < pageWidth) return rect;
    }
    return null;
  };
  const textIsSeen = (node, el, context) => {
    const style = context.style;
    if (context.concealed || style.visibility !== "visible" || parseFloat(style.fontSize) < MIN_FONT_PX) return false;
    if (context.collapsed) return true;
    const rect = seenRect(node);
    return rect !== null && !blends(el, rect, context, style) && !covered(el, rect);
  };

  const inside = (el, context) => {
    const style = getComputedStyle(el);
    const opacity = context.opacity * parseFloat(style.opacity);
    const rect = style.overflowX !== "visible" || style.overflowY !== "visible" ? el.getBoundingClientRect() : null;
    const boxed = rect !== null && !context.collapsed && style.display !== "inline" && style.display !== "contents" &&
      (rect.width <= 1 || rect.height <= 1);
    const colour = rgba(style.backgroundColor);
    const clipText = (style.webkitBackgroundClip || style.backgroundClip) === "text";
    let background = context.background;
    if (style.backgroundImage !== "none") background = null;
    else if (colour && colour[3] >= 0.9) background = colour;
    else if (colour && colour[3] > 0) background = null;
    return {
      ...context, style, opacity, background, clipText: context.clipText || clipText,
      pre: /^(pre|pre-wrap|pre-line|break-spaces)$/.test(style.whiteSpace) || /preserve/.test(style.whiteSpaceCollapse || ""),
      concealed: context.concealed || style.display === "none" || style.contentVisibility === "hidden" || opacity < MIN_OPACITY ||
        boxed || clipped(style) || /opacity\(0(?:\.0\d*)?%?\)/.test(style.filter),
    };
  };

  // ---- the walk --------------------------------------------------------------------------------------------
  const visible = (el, context) => {
    const rect = el.getBoundingClientRect();
    return !context.concealed && context.style.visibility === "visible" && rect.width > 1 && rect.height > 1;
  };
  const childrenOf = (el) => {
    if (el.tagName === "SLOT") { const given = el.assignedNodes({ flatten: true }); return given.length ? given : el.childNodes; }
    return el.shadowRoot ? el.shadowRoot.childNodes : el.childNodes;
  };
  const walkAll = (nodes, context, out) => { for (const node of nodes) walk(node, context, out); };
  const line = (el, context) => { const out = new Writer(true); walkAll(childrenOf(el), context, out); return out.value(); };

  const walk = (node, context, out) => {
    if (truncated) return;
    if (node.nodeType === Node.TEXT_NODE) {
      const text = node.nodeValue.replaceAll(limits.mark, "");
      if (!text.trim()) { if (text) out.text(" ", false); return; }
      if (textIsSeen(node, context.el, context)) out.text(text, context.pre);
      else hidden.push(squeeze(text));
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName.toUpperCase())) return;
    visited += 1;
    if (visited > limits.elements || chars > limits.chars || (visited % 500 === 0 && performance.now() - started > limits.ms)) {
      truncated = true;
      return;
    }
    element(node, { ...inside(node, context), el: node }, out);
  };

  const element = (el, context, out) => {
    const tag = el.tagName.toUpperCase(), display = context.style.display;
    if (tag === "BR") { out.end(); return; }
    const block = !/^(inline|contents|none|ruby|table-cell|inline-block|inline-flex)/.test(display);
    const spaced = SPACED.has(tag) && !(context.depth && /^[UO]L$/.test(tag));
    if (block) spaced ? out.space() : out.end();
    if (!special(tag, el, context, out)) walkAll(childrenOf(el), context, out);
    if (display === "table-cell" || /^inline-(block|flex)/.test(display)) out.text(" ", false);
    if (block) spaced ? out.space() : out.end();
  };

  const special = (tag, el, context, out) => {
    if (/^H[1-6]$/.test(tag)) {
      const text = line(el, context);
      if (text) out.text("#".repeat(+tag[1]) + " " + text, false);
      if (text && tag === "H1") headlines.push(text);
      return true;
    }
    if (tag === "LI") return listItem(el, context, out);
    if (tag === "TABLE") return table(el, context, out);
    if (tag === "DETAILS" && !el.open) return collapsed(el, context, out);
    if (tag === "IFRAME" || tag === "FRAME") return frame(el, context, out);
    if (tag === "IMG") {
      const rect = el.getBoundingClientRect();
      if (visible(el, context) && rect.width >= BIG_IMAGE_PX && rect.height >= BIG_IMAGE_PX) facts.largeImages += 1;
      if (el.alt && el.alt.trim()) hidden.push("[image] " + squeeze(el.alt));
      return true;
    }
    if (tag === "A" && el.href && links.length < limits.links && visible(el, context)) {
      if (/^https?:/.test(el.href)) links.push([squeeze(el.textContent).slice(0, 300), el.href]);
      return false;
    }
    return /^(INPUT|TEXTAREA|SELECT)$/.test(tag) && field(tag, el, context, out);
  };

  const listItem = (el, context, out) => {
    const list = el.parentElement;
    const ordered = list && list.tagName === "OL";
    const items = ordered ? [...list.children].filter((item) => item.tagName === "LI") : [];
    const mark = ordered ? `${(list.start || 1) + items.indexOf(el)}. ` : "- ";
    const outer = out.prefix;
    const indent = "  ".repeat(Math.max(0, context.depth));
    out.prefix = indent + mark;
    walkAll(childrenOf(el), { ...context, depth: context.depth + 1 }, out);
    out.end();
    out.prefix = outer;
    return true;
  };

  const table = (el, context, out) => {
    const laidOut = el.querySelector("table, form, h1, h2") || el.rows.length < 2 || /^(presentation|none)$/.test(el.getAttribute("role") || "");
    if (laidOut || out.oneLine) return false;
    if (el.caption) { out.text(line(el.caption, { ...inside(el.caption, context), el: el.caption }), false); out.end(); }
    for (const row of el.rows) {
      const rowContext = { ...inside(row, context), el: row };
      const cells = [...row.cells].map((cell) => line(cell, { ...inside(cell, rowContext), el: cell }));
      if (cells.some(Boolean)) { out.text(cells.join(" | "), false); out.end(); }
    }
    return true;
  };

  const collapsed = (el, context, out) => {
    const summary = [...el.children].find((child) => child.tagName === "SUMMARY");
    const label = summary ? line(summary, { ...inside(summary, context), el: summary }) : "Details";
    out.end();
    out.text(`[collapsed: ${label}]`, false);
    out.end();
    const rest = [...el.childNodes].filter((child) => child !== summary);
    walkAll(rest, { ...context, collapsed: true }, out);
    out.end();
    out.text("[end of collapsed]", false);
    out.end();
    return true;
  };

  const frame = (el, context, out) => {
    const rect = el.getBoundingClientRect();
    const seen = visible(el, context) && rect.width >= 30 && rect.height >= 15 && frames.length < limits.frames;
    if (!seen) return true;
    out.end();
    out.text(`${limits.mark}${frames.push(el) - 1}${limits.mark}`, false);
    out.end();
    return true;
  };

  const field = (tag, el, context, out) => {
    if (el.type === "hidden" || !visible(el, context)) return true;
    if (el.type === "password") {
      facts.hasPasswordField = true;
      const form = el.form || el.closest("form") || el.parentElement;
      facts.loginFormChars = Math.max(facts.loginFormChars, squeeze((form && form.innerText) || "").length);
    }
    const isButton = /^(submit|button|reset|image)$/.test(el.type);
    if (!isButton) facts.inputs += 1;
    let text = el.type === "password" ? "" : el.value || el.placeholder || "";
    if (tag === "SELECT") text = el.selectedOptions && el.selectedOptions[0] ? el.selectedOptions[0].text : "";
    if (/^(checkbox|radio)$/.test(el.type)) text = el.checked ? "[x]" : "[ ]";
    if (text) out.text(` ${squeeze(text)} `, false);
    return true;
  };

  const consentChars = () => {
    const isDialog = (el) => /dialog$/.test(el.getAttribute("role") || "");
    const asks = (el) => CONSENT.test(`${el.id} ${el.getAttribute("class") || ""}`) || (isDialog(el) && CONSENT.test(el.innerHTML.slice(0, 2000)));
    const found = [...document.querySelectorAll("[id], [class], [role=dialog], [role=alertdialog]")]
      .filter((el) => el !== root && asks(el) && el.getClientRects().length && (isDialog(el) || floats(el)));
    const outer = found.filter((el) => !found.some((other) => other !== el && other.contains(el)));
    return outer.reduce((sum, el) => sum + squeeze(el.innerText || "").length, 0);
  };

  const out = new Writer(false);
  const blank = { el: root, opacity: 1, background: [255, 255, 255, 1], concealed: false, collapsed: false, clipText: false, depth: 0, pre: false };
  if (root) walk(root, blank, out);
  facts.consentChars = consentChars();
  return { title: document.title || "", text: out.value(), hidden, links, headlines, truncated, ...facts };
}
