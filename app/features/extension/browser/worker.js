// Service worker: runs one capture at a time and the walk through all flagged URLs, also while the popup is closed.
// Its status is in chrome.storage.session, where the popup reads it.
import { flagged, submitPage, pair, unpair } from "./service.js";
import { captureTab } from "./tab.js";

const READY = chrome.storage.session.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" });
let busy = false;

const walk = async () => (await chrome.storage.session.get("walk")).walk ?? null;
const saveWalk = (value) => (value ? chrome.storage.session.set({ walk: value }) : chrome.storage.session.remove("walk"));

async function showStatus(text, kind = "work") {
  await chrome.storage.session.set({ status: { text, kind } });
  await chrome.action.setBadgeText({ text: { work: "…", done: "✓", wrong: "!" }[kind] ?? "" });
}

async function shownTab() {
  const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
  if (!tab) throw new Error("There is no tab to capture.");
  return tab;
}

async function capture({ url }) {
  const tab = await shownTab();
  if (tab.url && !/^https?:/.test(tab.url)) throw new Error("This tab is not a web page.");
  const page = await submitPage(await captureTab(tab, url, showStatus));
  const good = !page.problem;
  const state = await walk();
  if (good && state && state.all[state.at].url === url) await openNext(state, tab, 1);
  else await showStatus(good ? "Captured and submitted." : `Submitted, but it looks like a ${page.outcome.replaceAll("_", " ")}: ${page.detail}`, good ? "done" : "wrong");
  return { problem: page.problem, outcome: page.outcome, id: page.id };
}

// Open the next flagged URL in the tab. The person then solves what blocks the page and presses the button again.
async function openNext(state, tab, done) {
  const next = { ...state, at: state.at + 1, done: state.done + done };
  if (next.at >= next.all.length) {
    await saveWalk(null);
    await showStatus(`Done: ${next.done} of ${next.all.length} captured.`, "done");
    return;
  }
  await saveWalk(next);
  await chrome.tabs.update(tab.id, { url: next.all[next.at].opens });
  await showStatus(`${next.done} captured. Now ${next.at + 1} of ${next.all.length}: when the page is visible, press the button again.`, "done");
}

async function begin() {
  const all = (await flagged()).filter((one) => /^https?:/i.test(one.opens)).map(({ url, opens }) => ({ url, opens }));
  if (all.length === 0) throw new Error("No URL needs work.");
  const tab = await shownTab();
  await openNext({ all, at: -1, done: 0 }, tab, 0);
  return {};
}

async function skip() {
  const state = await walk();
  if (state) await openNext(state, await shownTab(), 0);
  return {};
}

async function stop() {
  const state = await walk();
  await saveWalk(null);
  await showStatus(state ? `Stopped: ${state.done} captured.` : "", "done");
  return {};
}

const handlers = {
  pair: ({ service, code, name }) => pair(service, code, name).then(({ service: at, by }) => ({ service: at, by })),
  unpair: () => unpair().then(() => ({})),
  flagged: () => flagged().then((items) => ({ items })),
  capture, begin, skip, stop,
};
const EXCLUSIVE = new Set(["capture", "begin", "skip"]);

async function run(message) {
  await READY;
  const exclusive = EXCLUSIVE.has(message.act);
  if (exclusive && busy) throw new Error("A capture is already running.");
  busy ||= exclusive;
  try {
    return await handlers[message.act](message);
  } finally {
    if (exclusive) busy = false;
  }
}

chrome.runtime.onMessage.addListener((message, sender, answer) => {
  if (sender.id !== chrome.runtime.id || sender.tab || !Object.hasOwn(handlers, message?.act ?? "")) return false;
  run(message).then(
    (value) => answer({ value }),
    async (error) => {
      await showStatus(error.message, "wrong");
      answer({ error: error.message, status: error.status });
    },
  );
  return true; // the response is asynchronous
});
