// Text boxes of a document. For each text node: its beginning, its length, and its lines with boxes in pixels of the page.
// A box of width 0 is not visible because it is scrolled out of an inner element. For each frame: its number, its content
// box, and the visible part of that box.
(() => {
  const found = [], range = document.createRange();
  let probes = 0;  // number of lookups of a single character's position
  let lineCount = 0;  // number of lines
  const squeeze = (text) => text.replace(/[\s\u00a0]+/g, " ").trim();
  const linesOf = (rects) => {
    const lines = [];
    for (const { left, top, right, bottom } of rects) {
      const last = lines[lines.length - 1];
      if (last && Math.min(last.bottom, bottom) - Math.max(last.top, top) > (bottom - top) / 2) {
        last.left = Math.min(last.left, left); last.right = Math.max(last.right, right);
      } else lines.push({ left, top, right, bottom });
    }
    return lines;
  };
  // Return whether an offset in a text is above a line, and the first offset from there that has a position.
  const isAboveLine = (node, place, end, line, maxProbes) => {
    for (let at = place; at < end && probes <= maxProbes; at += 1) {
      probes += 1;
      range.setStart(node, at); range.setEnd(node, at + 1);
      const rect = range.getClientRects()[0];
      if (rect) return [rect.bottom <= line.top + (line.bottom - line.top) / 2, at];
    }
    return [false, end];
  };
  // Return the offset of the first character at or below a line: exponential search around the offset that the widths of
  // the lines suggest, then binary search. The limit is a number of lookups and not a time, so that the same page always
  // has the same boxes. A page's clock is also too coarse to measure a single lookup.
  const findLineStart = (node, line, from, guess, maxProbes) => {
    let low = from, high = node.nodeValue.length, next = Math.min(Math.max(from, guess), high);
    if (probes > maxProbes) return next;
    for (let step = 4, known = 0; low < high; step *= 2) {
      const [isAbove, at] = isAboveLine(node, next, high, line, maxProbes);
      if (isAbove) low = at + 1;
      else high = next;
      const side = isAbove ? 1 : -1;
      if (known && side !== known) break;
      known = side;
      next = isAbove ? low + step : high - step;
      if (next <= low || next >= high) break;
    }
    while (low < high) {
      const middle = (low + high) >> 1, [isAbove, at] = isAboveLine(node, middle, high, line, maxProbes);
      if (isAbove) low = at + 1;
      else high = middle;
    }
    return low;
  };
  const boxOf = (line, visibleArea) => {
    const y = (line.top + line.bottom) / 2, x = (line.left + line.right) / 2;
    if (visibleArea && !(y > visibleArea.top && y < visibleArea.bottom && x > visibleArea.left && x < visibleArea.right)) return [0, 0, 0, 0];
    return [line.left + scrollX, line.top + scrollY, line.right - line.left, line.bottom - line.top].map(Math.round);
  };
  // Map offsets in the raw text to offsets in the displayed text. Offsets must be ascending, so that each part is counted
  // only once; otherwise a text of megabytes with thousands of lines would take minutes.
  const offsetMapper = (raw, shown, pre) => {
    const indent = raw.length - raw.trimStart().length;
    let at = 0, count = 0, afterSpace = true;
    return (place) => {
      if (pre) return Math.max(0, place - indent);
      let piece = raw.slice(at, place).replace(/[\s\u00a0]+/g, " ");
      at = Math.max(at, place);
      if (afterSpace && piece.startsWith(" ")) piece = piece.slice(1);
      if (piece) afterSpace = piece.endsWith(" ");
      count += piece.length;
      return count + (shown[count] === " " ? 1 : 0);
    };
  };
  const addText = (node, rects, context, maxLines, maxProbes) => {
    if (context.collapsed || lineCount >= maxLines) return;
    const raw = node.nodeValue, shown = context.pre ? raw.trim() : squeeze(raw), lines = linesOf(rects);
    lineCount += lines.length;
    if (lineCount > maxLines) return;
    if (lines.length === 1) {
      found.push([shown.slice(0, 40), shown.length, [[0, ...boxOf(lines[0], context.visibleArea)]]]);
      return;
    }
    const shownOffset = offsetMapper(raw, shown, context.pre);
    const width = lines.reduce((sum, line) => sum + line.right - line.left, 0) || 1;
    const boxes = [];
    let from = 0, passed = 0;
    lines.forEach((line, number) => {
      if (number) from = findLineStart(node, line, from, Math.round((raw.length * passed) / width), maxProbes);
      passed += line.right - line.left;
      boxes.push([number ? shownOffset(from) : 0, ...boxOf(line, context.visibleArea)]);
    });
    if (boxes.length) found.push([shown.slice(0, 40), shown.length, boxes]);
  };
  // Content of a rotated or skewed frame has no upright box. No box is better than a wrong one.
  const upright = (el) => {
    for (let at = el; at; at = at.assignedSlot || at.parentElement || at.getRootNode().host) {
      const style = getComputedStyle(at), matrix = new DOMMatrixReadOnly(style.transform === "none" ? "" : style.transform);
      const slanted = Math.abs(matrix.b) > 1e-3 || Math.abs(matrix.c) > 1e-3 || matrix.a <= 0 || matrix.d <= 0;
      if (!matrix.is2D || slanted || (style.rotate && style.rotate !== "none")) return false;
    }
    return true;
  };
  const addFrame = (el, number, visibleArea) => {
    const rect = el.getBoundingClientRect(), style = getComputedStyle(el);
    const across = rect.width / el.offsetWidth, down = rect.height / el.offsetHeight;
    const inset = (side) => parseFloat(style[`padding${side}`]) || 0;
    const left = rect.left + (el.clientLeft + inset("Left")) * across, top = rect.top + (el.clientTop + inset("Top")) * down;
    const width = (el.clientWidth - inset("Left") - inset("Right")) * across;
    const height = (el.clientHeight - inset("Top") - inset("Bottom")) * down;
    const seen = visibleArea || { left, top, right: left + width, bottom: top + height };
    const shown = [Math.max(left, seen.left), Math.max(top, seen.top), Math.min(left + width, seen.right), Math.min(top + height, seen.bottom)];
    if (!(shown[2] > shown[0] && shown[3] > shown[1] && upright(el))) return;
    const scroll = [scrollX, scrollY];
    found.push([number, [left + scrollX, top + scrollY, width, height], shown.map((at, nth) => at + scroll[nth % 2])]);
  };
  return { found, addText, addFrame };
})()
