// Service worker: runs one capture at a time and the walk through all flagged URLs, also while the popup is closed.
// Its status is in chrome.storage.session, where the popup reads it.
import { flagged, submitPage, pair, unpair } from "./service.js";
import { captureTab } from "./tab.js";

const READY = chrome.storage.session.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" });
let busy = false;

const walk = async () => (await chrome.storage.session.get("walk")).walk ?? null;
const keepWalk = (value) => (value ? chrome.storage.session.set({ walk: value }) : chrome.storage.session.remove("walk"));

async function tell(text, kind = "work") {
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
  const page = await submitPage(await captureTab(tab, url, tell));
  const good = !page.problem;
  const now = await walk();
  if (good && now && now.all[now.at].url === url) await openNext(now, tab, 1);
  else await tell(good ? "Captured and submitted." : `Submitted, but it looks like a ${page.outcome.replaceAll("_", " ")}: ${page.detail}`, good ? "done" : "wrong");
  return { problem: page.problem, outcome: page.outcome, id: page.id };
}

// Open the next flagged URL in the tab. The person then solves what blocks the page and presses the button again.
async function openNext(now, tab, done) {
  const next = { ...now, at: now.at + 1, done: now.done + done };
  if (next.at >= next.all.length) {
    await keepWalk(null);
    await tell(`Done: ${next.done} of ${next.all.length} captured.`, "done");
    return;
  }
  await keepWalk(next);
  await chrome.tabs.update(tab.id, { url: next.all[next.at].opens });
  await tell(`${next.done} captured. Now ${next.at + 1} of ${next.all.length}: when the page is visible, press the button again.`, "done");
}

async function begin() {
  const all = (await flagged()).filter((one) => /^https?:/i.test(one.opens)).map(({ url, opens }) => ({ url, opens }));
  if (all.length === 0) throw new Error("No URL needs work.");
  const tab = await shownTab();
  await openNext({ all, at: -1, done: 0 }, tab, 0);
  return {};
}

async function skip() {
  const now = await walk();
  if (now) await openNext(now, await shownTab(), 0);
  return {};
}

async function stop() {
  const now = await walk();
  await keepWalk(null);
  await tell(now ? `Stopped: ${now.done} captured.` : "", "done");
  return {};
}

const acts = {
  pair: ({ service, code, name }) => pair(service, code, name).then(({ service: at, by }) => ({ service: at, by })),
  unpair: () => unpair().then(() => ({})),
  flagged: () => flagged().then((items) => ({ items })),
  capture, begin, skip, stop,
};
const ALONE = new Set(["capture", "begin", "skip"]);

async function run(message) {
  await READY;
  const alone = ALONE.has(message.act);
  if (alone && busy) throw new Error("A capture is already running.");
  busy ||= alone;
  try {
    return await acts[message.act](message);
  } finally {
    if (alone) busy = false;
  }
}

chrome.runtime.onMessage.addListener((message, sender, answer) => {
  if (sender.id !== chrome.runtime.id || sender.tab || !Object.hasOwn(acts, message?.act ?? "")) return false;
  run(message).then(
    (value) => answer({ value }),
    async (error) => {
      await tell(error.message, "wrong");
      answer({ error: error.message, status: error.status });
    },
  );
  return true; // the response is asynchronous
});
