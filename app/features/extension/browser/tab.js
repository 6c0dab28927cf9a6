// Capture of a tab: its visible text, its HTML and a screenshot of the full page.

const MARK = "\ue000";
const LIMITS = {
  mark: MARK, elements: 400000, chars: 4000000, ms: 8000, links: 5000, frames: 20, hosts: 500, hitTests: 4000, places: 0,
  probes: 0,
};
const PLACES = { ...LIMITS, ms: 4000, places: 20000, probes: 2500 };
const MAX_PLACES_CHARS = 4000000;
const FARTHEST_PX = 1000000;
const MAX_HTML = 6 * 1024 * 1024;
const MAX_WIDTH_PX = 1100;
const MAX_HEIGHT_PX = 10000;
const PAUSE_MS = 550; // Chromium allows at most two screenshots per second
const QUALITY = 0.85;

export async function captureTab(tab, url, tell) {
  tell("Reading the page");
  const read = await inTab(tab, readPage, [LIMITS], ["read_page.js"]);
  const { image, places } = await takeScreenshot(tab, tell);
  const text = read.text.replaceAll(new RegExp(`${MARK}\\d+${MARK}`, "g"), "").trim();
  return {
    fields: {
      url, text, tab_url: read.url.slice(0, 4096), title: read.title.slice(0, 1000), password_fields: read.passwordFields,
      places, login_form_chars: read.loginFormChars, consent_chars: read.consentChars, inputs: read.inputs, large_images: read.largeImages,
    },
    html: read.html.length > MAX_HTML ? null : read.html,
    image,
  };
}

// Runs in the page in the isolated world of the extension, out of reach of the page's scripts.
function readPage(limits) {
  const found = globalThis.assayRead(limits);
  // Hidden fields can contain private data such as tokens and account numbers.
  const copy = document.documentElement.cloneNode(true);
  for (const one of copy.querySelectorAll("input[type=hidden], input[type=password]")) one.removeAttribute("value");
  return {
    text: found.text, title: found.title || document.title, url: location.href,
    html: `<!doctype html>\n${copy.outerHTML}`, passwordFields: Number(Boolean(found.hasPasswordField)),
    loginFormChars: found.loginFormChars ?? 0, consentChars: found.consentChars ?? 0, inputs: found.inputs ?? 0,
    largeImages: found.largeImages ?? 0,
  };
}

async function inTab(tab, func, args, files) {
  const target = { tabId: tab.id };
  if (files) await chrome.scripting.executeScript({ target, files });
  const [{ result }] = await chrome.scripting.executeScript({ target, func, args });
  return result;
}

// Runs in the page. Return the text boxes in CSS pixels of the page, as JSON.
function readBoxes(limits) {
  return globalThis.assayRead(limits).places;
}

// Return the text boxes that are equal before and after the screenshots, because scrolling can move content. Boxes in
// frames are left out, as is their text.
function stableBoxes(before, after) {
  const unchanged = new Set(JSON.parse(after).map((one) => JSON.stringify(one)));
  const same = JSON.parse(before).filter((one) => typeof one[0] === "string" && unchanged.has(JSON.stringify(one)));
  return same.filter(isValidBox).map(([begins, ...more]) => [begins.replace(/[\ud800-\udbff]$/, "").toWellFormed(), ...more]);
}

// Return whether the service accepts the text box. One invalid box would make it reject the whole page.
function isValidBox([, length, lines]) {
  const inRange = ([, ...box]) => box.every((one) => Math.abs(one) <= FARTHEST_PX);
  return length > 0 && lines.every((line, nth) => line[0] >= (lines[nth - 1]?.[0] ?? 0) && line[0] <= length && inRange(line));
}

function boxesJson(before, after, width, height) {
  for (let pieces = stableBoxes(before, after); pieces.length; pieces = pieces.slice(0, pieces.length >> 1)) {
    const json = JSON.stringify({ width, height, pieces });
    if (json.length <= MAX_PLACES_CHARS) return json;
  }
  return "";
}

// Take a full-page screenshot by scrolling and stitching, and return it with the text boxes.
async function takeScreenshot(tab, tell) {
  const page = await inTab(tab, begin, []);
  try {
    const scale = Math.min(1, MAX_WIDTH_PX / page.width);
    const height = Math.min(page.height, Math.floor(MAX_HEIGHT_PX / scale));
    const canvas = new OffscreenCanvas(Math.round(page.width * scale), Math.max(1, Math.round(height * scale)));
    const paint = canvas.getContext("2d");
    await inTab(tab, goTo, [0, false]);
    await settle();
    const before = await inTab(tab, readBoxes, [PLACES]);
    const tops = [];
    for (let top = 0; top < height; top += page.window) tops.push(top);
    for (const [nth, top] of tops.entries()) {
      tell(`Screenshot ${nth + 1} of ${tops.length}`);
      const at = await inTab(tab, goTo, [top, nth > 0]);
      await settle();
      await checkStillShown(tab, at.url);
      const shot = await chrome.tabs.captureVisibleTab(tab.windowId, { format: "jpeg", quality: 90 });
      const bitmap = await createImageBitmap(await (await fetch(shot)).blob());
      paint.drawImage(bitmap, 0, Math.round(at.top * scale), canvas.width, Math.round((bitmap.height / bitmap.width) * canvas.width));
      bitmap.close();
    }
    await inTab(tab, showAll, []);
    await settle();
    const after = await inTab(tab, readBoxes, [PLACES]);
    const image = await canvas.convertToBlob({ type: "image/jpeg", quality: QUALITY });
    return { image, places: boxesJson(before, after, page.width, canvas.height / scale) };
  } finally {
    // If the tab was closed, there is nothing to restore.
    await inTab(tab, showAll, []).catch(() => {});
    await inTab(tab, end, [page.top]).catch(() => {});
  }
}

const settle = () => new Promise((ready) => setTimeout(ready, PAUSE_MS));

async function checkStillShown(tab, url) {
  const now = await chrome.tabs.get(tab.id);
  if (!now.active || (now.url ?? url) !== url) throw new Error("The tab changed or was left during the capture. Nothing was submitted.");
}

function begin() {
  const root = document.scrollingElement ?? document.documentElement;
  const style = document.createElement("style");
  style.id = "assay-still";
  style.textContent = "*{scroll-behavior:auto!important;animation-play-state:paused!important;caret-color:transparent!important}";
  document.documentElement.append(style);
  return { width: innerWidth, window: innerHeight, height: Math.max(root.scrollHeight, innerHeight), top: scrollY };
}

// Hide fixed and sticky elements after the first screenshot, because they would appear in every screenshot.
function goTo(top, hideFixed) {
  if (hideFixed && !globalThis.assayHidden) {
    globalThis.assayHidden = [];
    for (const one of document.querySelectorAll("body *")) {
      if (["fixed", "sticky"].includes(getComputedStyle(one).position)) {
        globalThis.assayHidden.push([one, one.style.getPropertyValue("visibility"), one.style.getPropertyPriority("visibility")]);
        one.style.setProperty("visibility", "hidden", "important");
      }
    }
  }
  scrollTo(0, top);
  return { top: scrollY, url: location.href };
}

// Show the hidden elements again and scroll to the top.
function showAll() {
  for (const [one, value, priority] of globalThis.assayHidden ?? []) {
    if (value) one.style.setProperty("visibility", value, priority);
    else one.style.removeProperty("visibility");
  }
  globalThis.assayHidden = undefined;
  scrollTo(0, 0);
}

function end(top) {
  document.getElementById("assay-still")?.remove();
  scrollTo(0, top);
}
