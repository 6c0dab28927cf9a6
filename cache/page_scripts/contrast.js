// Colours of text, and whether text has enough contrast to its background. Reads styles only.
(() => {
  const MIN_OPACITY = 0.1, MIN_CONTRAST = 20, FAR_PX = 40;
  const drawn = new Map();
  let pen = null;
  // lab(), oklch(), color() and similar: draw a pixel, because there is no other way to get red, green and blue.
  const renderedColour = (css) => {
    if (!drawn.has(css)) {
      pen = pen || new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = "rgba(0, 0, 0, 0)";
      pen.fillStyle = css;
      pen.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
      drawn.set(css, [red, green, blue, alpha / 255]);
    }
    return drawn.get(css);
  };
  const rgba = (css) => {
    const found = /^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/.exec(css);
    if (found) return [+found[1], +found[2], +found[3], found[4] === undefined ? 1 : +found[4]];
    return /^(?:color|color-mix|hsla?|hwb|lab|lch|oklab|oklch)\(/.test(css) ? renderedColour(css) : null;
  };
  const isSimilar = (one, other) => one && other && [0, 1, 2].every((n) => Math.abs(one[n] - other[n]) < MIN_CONTRAST);
  const isDistinct = (css, background) => {
    const colour = rgba(css);
    return colour !== null && colour[3] >= MIN_OPACITY && !isSimilar(colour, background);
  };
  const hasVisibleShadow = (style, background) => style.textShadow !== "none" && style.textShadow.split(/,(?![^(]*\))/).some((shadow) => {
    const colour = /[a-z-]+\([^)]*\)/.exec(shadow), [x = 0, y = 0] = (shadow.match(/-?[\d.]+px/g) || []).map(parseFloat);
    return colour !== null && Math.abs(x) <= FAR_PX && Math.abs(y) <= FAR_PX && isDistinct(colour[0], background);
  });
  const hasVisibleOutline = (style, background) => parseFloat(style.webkitTextStrokeWidth) > 0 && isDistinct(style.webkitTextStrokeColor, background);
  const textColour = (el, style) => {
    if (!(el instanceof SVGElement)) return rgba(style.webkitTextFillColor || style.color);
    if (style.stroke !== "none" && parseFloat(style.strokeWidth) > 0) return null;
    const fill = style.fill === "none" ? [0, 0, 0, 0] : rgba(style.fill);
    return fill && [fill[0], fill[1], fill[2], fill[3] * parseFloat(style.fillOpacity)];
  };
  // "none": invisible on any background. "same": visible only if another element is drawn behind it. "": visible.
  const invisibility = (el, style, context) => {
    const colour = textColour(el, style);
    if (!colour || hasVisibleShadow(style, context.background) || hasVisibleOutline(style, context.background)) return "";
    if (colour[3] < MIN_OPACITY) return context.clipText ? "" : "none";
    return isSimilar(colour, context.background) ? "same" : "";
  };
  // Background colour of an element's content. null if it is an image or translucent.
  const contentBackground = (style, background) => {
    if (style.backgroundImage !== "none") return uniformGradient(style.backgroundImage);
    const colour = rgba(style.backgroundColor);
    return !colour || colour[3] === 0 ? background : colour[3] >= 0.9 ? colour : null;
  };
  const uniformGradient = (image) => {
    const colours = /^(?:repeating-)?(?:linear|radial|conic)-gradient/.test(image) && !/url\(/.test(image) ?
      (image.match(/rgba?\([^)]*\)/g) || []).map(rgba) : [];
    return colours.length && colours.every((each) => each && each[3] >= 0.9 && isSimilar(each, colours[0])) ? colours[0] : null;
  };
  // Whether an image is missing or a translucent gradient.
  const isClear = (image) => (image.match(/[a-z-]+\([^()]*\)/g) || []).map(rgba).some((colour) => colour !== null && colour[3] < 0.9) || image === "none";
  // Text clipped out of a background is visible only if that background differs from the one behind it.
  const isClippedTextVisible = (style, background) => (style.webkitBackgroundClip || style.backgroundClip) === "text" &&
    (style.backgroundImage !== "none" ? !uniformGradient(style.backgroundImage) || !isSimilar(uniformGradient(style.backgroundImage), background) : isDistinct(style.backgroundColor, background));
  const isErased = (style) => {
    const mask = style.maskImage || "none", blur = /blur\(([\d.]+)px\)/.exec(style.filter);
    const colours = /^(?:linear|radial|conic)-gradient/.test(mask) ? mask.match(/rgba?\([^)]*\)/g) || [] : [];
    return (colours.length > 0 && colours.every((each) => { const colour = rgba(each); return colour !== null && colour[3] < MIN_OPACITY; })) ||
      (mask !== "none" && /(?:^|[ ,])0(?:px|%)/.test(style.maskSize || "")) || (blur !== null && +blur[1] >= 5) ||
      /opacity\(0(?:\.0\d*)?%?\)|contrast\(0(?:\.0\d*)?%?\)|brightness\((?:[5-9]|\d\d+)(?:\.\d+)?\)/.test(style.filter);
  };
  return { rgba, isClear, invisibility, contentBackground, isClippedTextVisible, isErased };
})()
