// Visible text of this document in reading order, as plain text with markdown headings, lists and table rows. Hidden text
// is collected separately. Runs in an isolated world; read-only. Frames are represented by markers in the text.
// Input and output through globals: __assayHosts (elements that may have a closed shadow root), __assayRoots (the roots
// that were found for them), __assayCovered (texts and frames that seem to be covered), __assayUncovered (those that a
// screenshot showed to be visible), __assayDialogs and __assayFrames (consent dialogs, and all frames by number).
(limits) => {
  const elementPath = /* include element_path */;
  const textBoxes = /* include text_boxes */;
  const contrast = /* include contrast */;
  const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "DATALIST", "CANVAS", "VIDEO", "AUDIO",
    "OBJECT", "EMBED", "MAP", "META", "LINK", "TITLE", "DESC", "DEFS", "CLIPPATH", "MASK", "SYMBOL", "PATTERN", "PARSERERROR"]);
  const SPACED = new Set(["P", "UL", "OL", "DL", "TABLE", "BLOCKQUOTE", "PRE", "FIGURE", "SECTION", "ARTICLE", "HR",
    "H1", "H2", "H3", "H4", "H5", "H6", "FORM", "FIELDSET", "DETAILS"]);
  const DRAWINGS = /^(?:canvas|video|svg|object|embed)$/i;
  const HOSTS = /^(?:ARTICLE|ASIDE|BLOCKQUOTE|DIV|FOOTER|H[1-6]|HEADER|MAIN|NAV|P|SECTION|SPAN)$/;
  const MIN_FONT_PX = 4, MIN_OPACITY = 0.1, MIN_BOX_PX = 3, BIG_IMAGE_PX = 150, SMALL_BOX_PX = 120, MIN_COVER = 0.9;
  const NOWHERE = { top: Infinity, bottom: -Infinity, left: Infinity, right: -Infinity };
  const started = performance.now();
  const pageX = window.scrollX, pageY = window.scrollY;
  const root = document.body || document.documentElement;
  const locked = [document.documentElement, document.body].some((el) => el && /hidden|clip/.test(getComputedStyle(el).overflowX));
  const pageWidth = locked ? window.innerWidth : Math.max(document.documentElement ? document.documentElement.scrollWidth : 0, window.innerWidth);
  const hosts = (globalThis.__assayHosts = []);
  const roots = globalThis.__assayRoots || new Map();
  const frames = [], hidden = [], alternatives = [], links = [], headlines = [], subheads = [], pdfs = [];
  const facts = { hasPasswordField: false, loginFormChars: 0, consentChars: 0, consentFrames: [], coveringFrames: [], inputs: 0, largeImages: 0, drawings: 0, hasUserField: false, asksForOldPassword: false };
  const covers = (globalThis.__assayCovered = []), uncovered = globalThis.__assayUncovered || new Set();
  let visited = 0, hitTests = 0, truncated = false, chars = 0;

  const squeeze = (text) => text.replace(/[\s\u00a0]+/g, " ").trim();
  const forms = (/* include form_facts */)(squeeze);

  // ---- output: lines with at most one blank line between them ----------------------------------------------
  class Writer {
    constructor(oneLine) { this.lines = []; this.line = ""; this.prefix = ""; this.oneLine = oneLine; this.blank = false; this.readings = []; this.readingBoxes = []; }
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
      const text = this.lineWithReadings().replace(/\s+$/, "");
      this.line = "";
      if (!text) return;
      if (this.blank && this.lines.length) this.lines.push("");
      this.blank = false;
      this.lines.push(this.prefix + text);
      this.prefix = this.prefix.replace(/\S/g, " ");
      chars += text.length;
    }
    space() { this.end(); this.blank = true; }
    // Ruby readings follow their line, so that they separate no words of it.
    lineWithReadings() {
      textBoxes.found.push(...this.readingBoxes.splice(0));
      const readings = this.readings.splice(0).join(" ");
      return readings ? `${this.line.trimEnd()} (${readings})` : this.line;
    }
    value() { this.end(); return this.oneLine ? squeeze(this.lineWithReadings()) : this.lines.join("\n"); }
  }

  // ---- visibility ------------------------------------------------------------------------------------------
  const clipped = (style) =>
    (/absolute|fixed/.test(style.position) && /rect\((?:0px|1px),? (?:0px|1px),? (?:0px|1px),? (?:0px|1px)\)/.test(style.clip)) ||
    /inset\((?:[5-9]\d|100)(?:\.\d+)?%|circle\(0(?:px|%)?(?: |\))|polygon\(0(?:px)? 0(?:px)?, 0(?:px)? 0(?:px)?/.test(style.clipPath);
  const isLoaded = (img) => img.complete && img.naturalWidth > 1 && img.naturalHeight > 1;
  const hasOpaqueBackground = (style) => { const colour = contrast.rgba(style.backgroundColor); return colour !== null && colour[3] >= MIN_COVER; };
  // Whether an element may draw something itself, at least partly.
  const drawsSomething = (el, style) => /^(IMG|VIDEO|CANVAS|IFRAME)$/.test(el.tagName) || style.backgroundImage !== "none" || hasOpaqueBackground(style);
  // Whether an element may hide the content behind it. If this is unknown (canvas, frame, partly transparent image), assume
  // that it does. Screenshots with and without the text decide later (`toggle_covered.js`).
  const opaque = (el, style) => {
    const clear = () => {
      if (el.tagName === "IMG") return !isLoaded(el);
      if (el.tagName === "VIDEO") return el.readyState < 2 && !el.poster;
      return !/^(CANVAS|IFRAME)$/.test(el.tagName) && !/url\(|image-set|paint\(|cross-fade|element\(/.test(style.backgroundImage) && contrast.isClear(style.backgroundImage);
    };
    if (!drawsSomething(el, style) || (!hasOpaqueBackground(style) && clear())) return false;
    let opacity = 1;
    for (let at = el; at; at = at.parentElement || (at.getRootNode() || {}).host) opacity *= parseFloat(getComputedStyle(at).opacity);
    return opacity >= MIN_COVER;
  };
  const floats = (el) => {
    for (let at = el; at && at !== document.documentElement; at = at.parentElement || (at.getRootNode() || {}).host) {
      if (/fixed|sticky/.test(getComputedStyle(at).position) || at.tagName === "DIALOG" || at.getAttribute("role") === "dialog") return true;
    }
    return false;
  };
  const consent = (/* include consent_dialogs */)(root, floats, squeeze, limits.consent);
  const frameElements = (globalThis.__assayFrames = []);
  const containsOrIs = (outer, el) => outer === el || outer.contains(el);
  const inWindow = (x, y) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

  // Floating element that permanently hides the whole page, or null. It covers the window, contains almost no text, and
  // has no control to close it.
  const CONTROLS = "a[href], button, input, select, textarea, summary, iframe, frame, video, [role=button], [role=link], [onclick], [tabindex]";
  const MAX_OVERLAY_CHARS = 100;
  const isClosable = (el) => el.matches(CONTROLS) || el.querySelector(CONTROLS) !== null || el.closest("dialog, [role=dialog], [role=alertdialog]") !== null ||
    [el, ...[...el.querySelectorAll("*")].slice(0, 200)].some((at) => getComputedStyle(at).cursor === "pointer");
  const fillsWindow = (rect) => rect.left <= 1 && rect.top <= 1 && rect.right >= innerWidth - 20 && rect.bottom >= innerHeight - 1;
  const overlay = (() => {
    const spots = [0.1, 0.5, 0.9].flatMap((x) => [0.02, 0.5, 0.98].map((y) => document.elementFromPoint(x * innerWidth, y * innerHeight)));
    let at = spots[0];
    while (at && at !== root && !(fillsWindow(at.getBoundingClientRect()) && opaque(at, getComputedStyle(at)))) at = at.parentElement;
    if (!at || at === root || !floats(at) || /^(CANVAS|IFRAME|VIDEO)$/.test(at.tagName) || !spots.every((spot) => spot && containsOrIs(at, spot))) return null;
    return squeeze(at.innerText || "").length > MAX_OVERLAY_CHARS || isClosable(at) ? null : at;
  })();

  // Whether an opaque element, which neither contains the text nor floats, covers the text completely. The page-wide
  // overlay counts although it floats.
  let underFloating = false;  // whether a floating element covers the last checked text
  const isHiddenByElement = (el, rect) => {
    underFloating = false;
    if (hitTests++ > limits.hitTests) return false;
    const y = rect.top + rect.height / 2;
    if (overlay && !containsOrIs(overlay, el) && !inWindow(rect.left + rect.width / 2, y)) return true;  // covered at every scroll position
    return [0.1, 0.5, 0.9].every((share) => {
      const x = rect.left + rect.width * share;
      const top = inWindow(x, y) ? document.elementFromPoint(x, y) : null;
      if (!top || el.getRootNode() !== document) return false;
      if (containsOrIs(top, el)) return isBehindAncestor(top, el) && opaque(top, getComputedStyle(top));
      if (overlay && containsOrIs(overlay, top)) return true;
      if (!opaque(top, getComputedStyle(top))) return false;
      underFloating = floats(top);
      return !underFloating;
    });
  };
  const isCovered = (node, el, rect) => {
    if (uncovered.has(node) || !isHiddenByElement(el, rect)) return false;
    if (covers.length < limits.covered) covers.push({ node, box: [rect.left + pageX, rect.top + pageY, rect.width, rect.height].map(Math.round) });
    return true;
  };
  const isBehindAncestor = (outer, el) => {
    for (let at = el; at && at !== outer; at = at.parentElement) if (parseInt(getComputedStyle(at).zIndex) < 0) return true;
    return false;
  };
  // Whether text has the colour of its background, unless another element is drawn in between.
  const blendsIn = (el, rect, context, style) => {
    const lost = contrast.invisibility(el, style, context);
    if (lost !== "same") return lost === "none";
    const x = rect.left + rect.width / 2, y = rect.top + rect.height / 2;
    const stack = inWindow(x, y) ? document.elementsFromPoint(x, y) : [];
    return !stack.some((other) => !containsOrIs(other, el) && drawsSomething(other, getComputedStyle(other)));
  };
  // If a clip path removes parts of an ancestor, text is visible where a hit test finds it.
  const cutAway = (el, rect, context) => {
    if (!context.cut || context.style.pointerEvents === "none" || hitTests++ > limits.hitTests) return false;
    const y = rect.top + rect.height / 2;
    return [0.1, 0.5, 0.9].map((share) => rect.left + rect.width * share).every((x) =>
      inWindow(x, y) && !el.getRootNode().elementsFromPoint(x, y).some((at) => at === el || el.contains(at)));
  };
  const isOnPage = (rect, context) => rect.bottom + pageY > 0 && !(context.fixed && rect.top >= innerHeight) && (context.scrollRange ?
    rect.right > context.scrollRange.left && rect.left < context.scrollRange.right :
    rect.right + pageX > 0 && rect.left + pageX < pageWidth && !(context.fixed && rect.left >= innerWidth));
  // Left and right edge of the content of an inner element that can be scrolled horizontally, for example around a wide table.
  const scrollRange = (el, style, rect, context) => {
    if (!/auto|scroll/.test(style.overflowX) || el.scrollWidth <= el.clientWidth || !isOnPage(rect, context)) return context.scrollRange;
    const left = (style.direction === "rtl" ? rect.right - el.scrollWidth : rect.left) - el.scrollLeft;
    return { left, right: left + el.scrollWidth };
  };
  // Content cut off by a small box cannot be scrolled to. A large box may be a "read more" or a page locked by a dialog.
  const isInBox = (rect, box) => box === null || (Math.min(rect.bottom, box.bottom) - Math.max(rect.top, box.top) >= Math.min(MIN_BOX_PX, rect.height / 2) &&
    (!box.indented || (rect.right > box.left + 1 && rect.left < box.right - 1)));
  const range = document.createRange();
  let rects = [];  // of the last checked text
  const seenRect = (node, context) => {
    range.selectNodeContents(node);
    rects = range.getClientRects();
    for (const rect of rects) {
      if (rect.width >= 1 && rect.height >= 3 && isOnPage(rect, context) && isInBox(rect, context.box)) return rect;
    }
    return null;
  };
  const textIsSeen = (node, el, context) => {
    const style = context.style;
    if (context.concealed || style.visibility !== "visible" || parseFloat(style.fontSize) < MIN_FONT_PX) return false;
    if (context.collapsed) return contrast.invisibility(el, style, context) === "";
    const rect = seenRect(node, context);
    return rect !== null && !blendsIn(el, rect, context, style) && !isCovered(node, el, rect) && !cutAway(el, rect, context);
  };

  const clips = (style) => style.overflowX !== "visible" || style.overflowY !== "visible" || /paint|strict|content/.test(style.contain);
  const childContext = (el, context) => {
    const style = getComputedStyle(el);
    const rect = clips(style) ? el.getBoundingClientRect() : null;
    const boxed = rect !== null && !context.collapsed && style.display !== "inline" && style.display !== "contents" &&
      (rect.width <= 1 || rect.height <= MIN_BOX_PX);
    const cuts = rect !== null && !boxed && rect.height < SMALL_BOX_PX && (/hidden|clip/.test(style.overflowY) || /paint|strict|content/.test(style.contain));
    const box = /absolute|fixed/.test(style.position) && !cuts ? null : context.box;
    const scrolls = rect !== null && !/^(?:HTML|BODY)$/.test(el.tagName) && style.display !== "inline";
    const around = context.visibleArea || { top: -Infinity, bottom: Infinity, left: -Infinity, right: Infinity };
    const visibleArea = !scrolls ? context.visibleArea : { top: Math.max(around.top, rect.top), bottom: Math.min(around.bottom, rect.bottom),
      left: Math.max(around.left, rect.left), right: Math.min(around.right, rect.right) };
    const own = cuts ? { top: rect.top, bottom: rect.bottom, left: rect.left, right: rect.right, indented: parseFloat(style.textIndent) > rect.width / 2 } : box;
    const fixed = context.fixed || (style.position === "fixed" && el.offsetParent === null);
    const outer = { fixed, scrollRange: /absolute|fixed/.test(style.position) ? null : context.scrollRange };
    const range = scrolls ? scrollRange(el, style, rect, outer) : outer.scrollRange;
    return { ...styleContext(style, context, boxed), box: own, visibleArea, fixed, scrollRange: range };
  };
  const styleContext = (style, context, boxed) => {
    const opacity = context.opacity * parseFloat(style.opacity);
    const background = contrast.contentBackground(style, context.background);
    return {
      ...context, style, opacity, background, clipText: context.clipText || contrast.isClippedTextVisible(style, context.background),
      cut: context.cut || style.clipPath !== "none",
      pre: /^(pre|pre-wrap|pre-line|break-spaces)$/.test(style.whiteSpace) || /preserve/.test(style.whiteSpaceCollapse || ""),
      concealed: context.concealed || style.display === "none" || style.contentVisibility === "hidden" || opacity < MIN_OPACITY ||
        boxed || clipped(style) || contrast.isErased(style),
    };
  };

  // ---- traversal -------------------------------------------------------------------------------------------
  const visible = (el, context) => {
    const rect = el.getBoundingClientRect();
    return !context.concealed && context.style.visibility === "visible" && rect.width > 1 && rect.height > 1;
  };
  const shadows = new Set();
  const childrenOf = (el) => {
    if (el.tagName === "SLOT") { const given = el.assignedNodes({ flatten: true }); return given.length ? given : el.childNodes; }
    const shadow = el.shadowRoot || roots.get(el);
    if (shadow) shadows.add(shadow);
    return shadow ? shadow.childNodes : el.childNodes;
  };
  const walkAll = (nodes, context, out) => { for (const node of nodes) walk(node, context, out); };
  const contents = (el, context, out) => {
    generated(el, "::before", context, out);
    walkAll(childrenOf(el), context, out);
    generated(el, "::after", context, out);
  };
  const line = (el, context) => { const out = new Writer(true); contents(el, context, out); return out.value(); };

  // An element that is visible but has no content of its own may have a closed shadow root.
  const mayHost = (el, tag, context) => {
    if (el.shadowRoot || roots.has(el) || hosts.length >= limits.hosts || !(tag.includes("-") || HOSTS.test(tag))) return false;
    const first = el.firstElementChild;
    const isEmpty = first ? !first.getClientRects().length && getComputedStyle(first).display !== "none" : !el.textContent.trim();
    return (tag.includes("-") || isEmpty) && visible(el, context);
  };

  const walk = (node, context, out) => {
    if (truncated) return;
    if (node.nodeType === Node.TEXT_NODE) {
      const text = node.nodeValue.replaceAll(limits.mark, "");
      if (!text.trim()) { if (text) out.text(" ", false); return; }
      if (textIsSeen(node, context.el, context)) {
        out.text(text, context.pre);
        textBoxes.addText(node, rects, underFloating && !context.collapsed ? { ...context, visibleArea: NOWHERE } : context, limits.places, limits.probes);
      } else hidden.push(squeeze(text));
      return;
    }
    if (node.nodeType === Node.ELEMENT_NODE && DRAWINGS.test(node.tagName)) drawing(node, context);
    if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName.toUpperCase())) return;
    visited += 1;
    if (visited > limits.elements || chars > limits.chars || (visited % 500 === 0 && performance.now() - started > limits.ms)) {
      truncated = true;
      return;
    }
    const label = controlLabel(node, context);
    if (label !== null) writeCollapsed(label, childrenOf(node), { ...context, el: node }, out);
    else element(node, { ...childContext(node, context), el: node }, out);
  };

  // ---- generated content of style sheets -------------------------------------------------------------------
  const generatedText = (content, el) => {
    let words = "";
    for (const [token, quoted, name] of content.matchAll(/"((?:[^"\\]|\\.)*)"|attr\(\s*([\w-]+)[^)]*\)|(?:open|close)-quote|\//g)) {
      if (token === "/") break;  // alternative text for screen readers
      if (quoted !== undefined) words += quoted.replace(/\\([0-9a-f]{1,6}) ?|\\(.)/gi, (all, code, one) => code ? String.fromCodePoint(parseInt(code, 16)) : one);
      else words += name ? el.getAttribute(name) || "" : '"';
    }
    return words.replace(/[\ue000-\uf8ff\u{f0000}-\u{10ffff}]/gu, "");  // glyphs of icon fonts
  };
  const generated = (el, which, context, out) => {
    const style = getComputedStyle(el, which);
    if (style.content === "none" || style.content === "normal" || style.display === "none") return;
    const words = generatedText(style.content, el);
    if (!words.trim()) { if (words) out.text(" ", false); return; }
    const width = parseFloat(style.width), height = parseFloat(style.height);
    const inner = styleContext(style, context, clips(style) && style.display !== "inline" && (width <= 1 || height <= 1));
    if (!generatedIsSeen(el, style, inner, width, height)) { hidden.push(squeeze(words)); return; }
    const placed = /absolute|fixed/.test(style.position);
    const apart = /^(?:block|flex|grid|table|list-item)/.test(style.display) && !placed;
    if (apart) out.end();
    out.text(placed ? ` ${words} ` : words, inner.pre);
    if (apart) out.end();
  };
  // Generated content has no rectangle, so use the values of its style and the box of its element.
  const generatedIsSeen = (el, style, context, width, height) => {
    if (context.concealed || style.visibility !== "visible" || parseFloat(style.fontSize) < MIN_FONT_PX) return false;
    if (context.collapsed) return true;
    const matrix = /matrix\(([-\d.e]+), [-\d.e]+, [-\d.e]+, ([-\d.e]+), ([-\d.e]+), ([-\d.e]+)\)/.exec(style.transform);
    if (matrix && Math.abs(matrix[1]) < 0.2 && Math.abs(matrix[2]) < 0.2) return false;
    if (parseFloat(style.textIndent) < -200) return false;
    let rect = el.getBoundingClientRect();
    if (/absolute|fixed/.test(style.position)) {
      const around = getComputedStyle(el).position !== "static" ? el : el.offsetParent || document.documentElement;
      const from = style.position === "fixed" ? { left: 0, top: 0 } : around.getBoundingClientRect();
      const left = from.left + parseFloat(style.left) + (matrix ? +matrix[3] : 0);
      const top = from.top + parseFloat(style.top) + (matrix ? +matrix[4] : 0);
      rect = { left, top, right: left + width, bottom: top + height, width, height };
    } else if (rect.width < 1 || rect.height < 3) return false;
    return isOnPage(rect, context) && isInBox(rect, context.box) && !blendsIn(el, rect, context, style) && !isHiddenByElement(el, rect);
  };

  const isLarge = (rect) => rect.width >= BIG_IMAGE_PX && rect.height >= BIG_IMAGE_PX;
  // A drawing, a video, or a background image. The screenshot shows whether it is blank.
  const drawing = (el, context) => {
    const own = { ...context, ...styleContext(getComputedStyle(el), context, false) };
    if (visible(el, own) && isLarge(el.getBoundingClientRect()) && !embedsPdf(el)) facts.drawings += 1;
  };
  // Whether an element displays a PDF, which this browser does not show in a page. Records its address.
  const embedsPdf = (el) => {
    const url = /^(?:IFRAME|EMBED)$/.test(el.tagName) ? el.src : el.tagName === "OBJECT" ? el.data : "";
    if (!/^https?:/.test(url) || !(/^application\/pdf\b/i.test(el.type) || /\.pdf$/i.test(new URL(url).pathname))) return false;
    pdfs.push(url);
    return true;
  };
  const element = (el, context, out) => {
    const tag = el.tagName.toUpperCase(), display = context.style.display;
    if (context.style.backgroundImage.includes("url(") && visible(el, context) && isLarge(el.getBoundingClientRect())) facts.drawings += 1;
    if (mayHost(el, tag, context)) hosts.push(el);
    if (tag === "BR") { out.end(); return; }
    if (tag === "RP") { contents(el, { ...context, concealed: true }, out); return; }
    if (tag === "RT") { reading(el, context, out); return; }
    const block = !/^(inline|contents|none|ruby|table-cell|inline-block|inline-flex)/.test(display) && !isInRuby(el) && !isInitial(el, context.style);
    const spaced = SPACED.has(tag) && !(context.depth && /^[UO]L$/.test(tag));
    if (block) spaced ? out.space() : out.end();
    if (!special(tag, el, context, out)) contents(el, context, out);
    if (display === "table-cell" || (/^inline-(block|flex)/.test(display) && !touchesNext(el))) out.text(" ", false);
    if (block) spaced ? out.space() : out.end();
  };

  const isInRuby = (el) => el.tagName === "RUBY" || (el.parentElement !== null && el.parentElement.tagName === "RUBY");
  const reading = (el, context, out) => {
    const before = textBoxes.found.length;
    const text = line(el, context);
    out.readingBoxes.push(...textBoxes.found.splice(before));
    if (text) out.readings.push(text);
  };

  // Whether the text of an element touches the following text on its line, as the parts of a price or the letters of an
  // animated heading do.
  const extent = (node) => { range.selectNodeContents(node); return range.getBoundingClientRect(); };
  const touchesNext = (el) => {
    const next = el.nextSibling;
    if (!next || el.childElementCount || next.childElementCount) return false;
    const here = extent(el), there = extent(next), gap = Math.max(there.left - here.right, here.left - there.right);
    return gap > -5 && gap < 1.5 && there.top < here.bottom && there.bottom > here.top;
  };
  // A large first letter of a paragraph, which floats and is part of the next word.
  const isInitial = (el, style) => style.float !== "none" && el.nextSibling !== null && el.nextSibling.nodeType === Node.TEXT_NODE &&
    /^\p{L}/u.test(el.nextSibling.nodeValue) && /^\p{P}?\p{L}$/u.test(el.textContent.trim());

  const special = (tag, el, context, out) => {
    if (/^H[1-6]$/.test(tag)) {
      const text = line(el, context);
      if (text) out.text("#".repeat(+tag[1]) + " " + text, false);
      if (text && /^H[12]$/.test(tag)) (tag === "H1" ? headlines : subheads).push(text);
      return true;
    }
    if (tag === "LI") return listItem(el, context, out);
    if (tag === "TABLE") return table(el, context, out);
    if (tag === "DETAILS" && !el.open) return collapsed(el, context, out);
    if (tag === "IFRAME" || tag === "FRAME") return frame(el, context, out);
    if (tag === "IMG") {
      const rect = el.getBoundingClientRect();
      if (visible(el, context) && isLoaded(el) && isLarge(rect)) facts.largeImages += 1;
      if (el.alt && el.alt.trim()) alternatives.push(squeeze(el.alt));
      return true;
    }
    if (tag === "A" && el.href && links.length < limits.links && visible(el, context)) {
      if (/^https?:/.test(el.href)) links.push([squeeze(el.textContent).slice(0, 300), el.href]);
      return false;
    }
    return /^(INPUT|TEXTAREA|SELECT)$/.test(tag) && field(tag, el, context, out);
  };

  // Numbers of the items of an ordered list, which can begin anywhere, count down, or have gaps.
  const numberings = new Map();
  const numbering = (list) => {
    if (numberings.has(list)) return numberings.get(list);
    const numbers = new Map(), items = [...list.children].filter((item) => item.tagName === "LI");
    let next = list.hasAttribute("start") ? list.start : list.reversed ? items.length : 1;
    for (const item of items) {
      if (/^\s*-?\d+/.test(item.getAttribute("value") || "")) next = item.value;
      numbers.set(item, next);
      next += list.reversed ? -1 : 1;
    }
    numberings.set(list, numbers);
    return numbers;
  };
  const listItem = (el, context, out) => {
    const list = el.parentElement;
    const mark = list && list.tagName === "OL" ? `${numbering(list).get(el)}. ` : "- ";
    const outer = out.prefix;
    const indent = "  ".repeat(Math.max(0, context.depth));
    out.prefix = indent + mark;
    contents(el, { ...context, depth: context.depth + 1 }, out);
    out.end();
    out.prefix = outer;
    return true;
  };

  const table = (el, context, out) => {
    const laidOut = el.querySelector("table, form, h1, h2") || el.rows.length < 2 || /^(presentation|none)$/.test(el.getAttribute("role") || "");
    if (laidOut || out.oneLine) return false;
    if (el.caption) { out.text(line(el.caption, { ...childContext(el.caption, context), el: el.caption }), false); out.end(); }
    for (const row of el.rows) {
      const rowContext = { ...childContext(row, context), el: row };
      const cells = [...row.cells].map((cell) => line(cell, { ...childContext(cell, rowContext), el: cell }));
      if (cells.some(Boolean)) { out.text(cells.join(" | "), false); out.end(); }
    }
    return true;
  };

  const collapsed = (el, context, out) => {
    const summary = [...el.children].find((child) => child.tagName === "SUMMARY");
    const handle = (summary || el).getBoundingClientRect();
    const opens = handle.width > 1 && handle.height > 1 && isOnPage(handle, context);
    const label = summary ? line(summary, { ...childContext(summary, context), el: summary }) : "Details";
    const inner = [...el.childNodes].filter((child) => child !== summary);
    if (opens) writeCollapsed(label, inner, context, out);
    else walkAll(inner, { ...context, concealed: true }, out);
    return true;
  };
  const writeCollapsed = (label, nodes, context, out) => {
    out.end();
    out.text(`[collapsed: ${label}]`, false);
    out.end();
    walkAll(nodes, { ...context, collapsed: true }, out);
    out.end();
    out.text("[end of collapsed]", false);
    out.end();
  };
  // Controls of collapsed parts, for example of an accordion, by the id of the part. Menus are no content.
  const MENUS = "nav, [role=navigation], [role=menu], [role=menubar], [role=listbox], [role=dialog], [aria-haspopup]:not([aria-haspopup=false])";
  const controls = new Map([...document.querySelectorAll("[aria-controls][aria-expanded=false]")]
    .filter((control) => !control.closest(MENUS)).map((control) => [control.getAttribute("aria-controls"), control]));
  const controlOf = (el) => {
    if (el.getAttribute("role") !== "tabpanel") return el.id && controls.has(el.id) && !el.closest(MENUS) ? controls.get(el.id) : null;
    const named = (el.getAttribute("aria-labelledby") || "").split(" ")[0];
    const tab = document.querySelector(`[role=tab][aria-controls="${CSS.escape(el.id || "-")}"]`) || document.getElementById(named);
    return tab && tab.getAttribute("role") === "tab" ? tab : null;
  };
  // Label of the visible control that shows this hidden element, else null.
  const controlLabel = (el, context) => {
    const control = context.concealed ? null : controlOf(el);
    if (!control || !control.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return null;
    const style = getComputedStyle(el), box = control.getBoundingClientRect();
    const isFolded = style.display === "none" || (clips(style) && el.getBoundingClientRect().height <= MIN_BOX_PX);
    return isFolded && box.width > 8 && box.height > 8 && isOnPage(box, context) ? squeeze(control.innerText || "").slice(0, 100) || null : null;
  };

  const frame = (el, context, out) => {
    const rect = el.getBoundingClientRect();
    const seen = visible(el, context) && rect.width >= 30 && rect.height >= 15 && isOnPage(rect, context) && isInBox(rect, context.box) &&
      !isCovered(el, el, rect) && frames.length < limits.frames;
    if (!seen || (isLarge(rect) && embedsPdf(el))) return true;
    out.end();
    if (consent.asksIn(el)) facts.consentFrames.push(frames.length);
    if (consent.mayAskIn(el)) facts.coveringFrames.push(frames.length);
    frameElements.push(el);
    const number = frames.push(elementPath(el)) - 1;
    out.text(`${limits.mark}${number}${limits.mark}`, false);
    if (limits.places && !underFloating) textBoxes.addFrame(el, number, context.visibleArea);
    out.end();
    return true;
  };

  const field = (tag, el, context, out) => {
    if (el.type === "hidden" || !visible(el, context)) return true;
    if (el.type === "password") {
      facts.hasPasswordField = true;
      facts.loginFormChars = Math.max(facts.loginFormChars, forms.formChars(el));
      if (!forms.asksForNewPassword(el)) facts.asksForOldPassword = true;
    }
    if (/^(?:text|email|tel)$/.test(el.type) && forms.isUserField(el)) facts.hasUserField = true;
    const isButton = /^(submit|button|reset|image)$/.test(el.type);
    if (!isButton) facts.inputs += 1;
    let text = el.type === "password" ? "" : el.value || el.placeholder || "";
    if (tag === "SELECT") text = el.selectedOptions && el.selectedOptions[0] ? el.selectedOptions[0].text : "";
    if (/^(checkbox|radio)$/.test(el.type)) text = el.checked ? "[x]" : "[ ]";
    if (!text) return true;
    const said = el.value || !el.placeholder ? context : styleContext(getComputedStyle(el, "::placeholder"), context, false);
    if (fieldIsSeen(el, said)) out.text(` ${squeeze(text)} `, false);
    else hidden.push(squeeze(text));
    return true;
  };
  const fieldIsSeen = (el, context) => {
    const rect = el.getBoundingClientRect(), style = context.style;
    return !context.concealed && isOnPage(rect, context) && isInBox(rect, context.box) && contrast.invisibility(el, style, context) === "" &&
      parseFloat(style.fontSize) >= MIN_FONT_PX && Math.abs(parseFloat(style.textIndent)) < Math.max(rect.width, 1);
  };

  // Number of characters of prose in scripts and templates, which is invisible until a script renders it.
  const proseInScripts = () => {
    const all = [...document.querySelectorAll("script:not([src]), template")].map((el) => el.tagName === "TEMPLATE" ? el.innerHTML : el.textContent);
    return all.join("\n").slice(0, 2000000).replace(/<[^>]*>|\\n/g, "\n").match(/[\p{L}\p{N}][\p{L}\p{M}\p{N} ,.:!?%'\u2019\u201c\u201d\u2013\u2014-]{59,}/gu)
      ?.filter((run) => run.split(" ").length >= 8 || /[\u3040-\u9fff\uac00-\ud7af]{20}/.test(run)).reduce((sum, run) => sum + run.length, 0) || 0;
  };
  const out = new Writer(false);
  const blank = { el: root, opacity: 1, background: [255, 255, 255, 1], concealed: false, collapsed: false, clipText: false, depth: 0, pre: false, box: null, scrollRange: null, visibleArea: null, fixed: false, cut: false };
  if (root) walk(root, blank, out);
  const dialogs = consent.find([document, ...shadows]);
  globalThis.__assayDialogs = dialogs.elements;
  facts.consentChars = dialogs.chars;
  facts.consentCovers = dialogs.covers;
  return {
    address: location.href, malformed: /xml$/.test(document.contentType) && document.querySelector("parsererror") !== null, title: document.title || "", text: out.value(), hidden, alternatives, links, pdfs, headlines: headlines.length ? headlines : subheads.slice(0, 1), frames, hosts: hosts.length,
    // As a string: transferring a hundred thousand numbers as values takes a second and 300 MB.
    places: JSON.stringify(textBoxes.found), view: [pageX, pageY, window.innerWidth, window.innerHeight], covered: covers.map((each) => each.box), scriptChars: proseInScripts(), truncated, ...facts,
  };
}
