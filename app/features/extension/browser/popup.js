// Popup of the extension: pairing, selection of the flagged URL that the tab shows, and the buttons. The service worker
// carries out the actions.
import { pairing } from "./service.js";

const at = (id) => document.getElementById(id);
let tab = null;
let urls = [];

async function ask(act, more = {}) {
  const answer = await chrome.runtime.sendMessage({ act, ...more });
  if (answer?.error) throw Object.assign(new Error(answer.error), { status: answer.status });
  return answer?.value ?? {};
}

// Lenient comparison key for preselecting a URL. The service applies its own rules for URLs of the same page.
function comparisonKey(url) {
  try {
    const { host, pathname, search } = new URL(url);
    return `${host.replace(/^www\./, "")}${pathname.replace(/\/$/, "")}${search}`.toLowerCase();
  } catch {
    return url;
  }
}

function showStatus({ text, kind } = {}) {
  at("status").textContent = text ?? "";
  at("status").className = kind === "wrong" ? "wrong" : "";
}

async function runAction(button, act) {
  button.disabled = true;
  try {
    await act();
  } catch (error) {
    showStatus({ text: error.message, kind: "wrong" });
    if (error.status === 401) await show();
  } finally {
    button.disabled = false;
  }
}

function compare() {
  const opens = urls.find((one) => one.url === at("url").value)?.opens ?? at("url").value;
  at("other").hidden = !tab?.url || !opens || comparisonKey(tab.url) === comparisonKey(opens);
}

function renderChoices(walk) {
  const wanted = walk ? walk.all[walk.at].url : urls.find((one) => tab?.url && comparisonKey(one.opens) === comparisonKey(tab.url))?.url;
  const all = urls.some((one) => one.url === wanted) || !wanted ? urls : [{ url: wanted, opens: wanted, leaves: 0 }, ...urls];
  at("url").replaceChildren(
    ...all.map((one) => {
      const option = document.createElement("option");
      option.value = one.url;
      option.textContent = `${one.url.length > 90 ? `${one.url.slice(0, 89)}…` : one.url} (${one.outcome ? `${one.outcome.replaceAll("_", " ")}, ` : ""}${one.leaves} leaves)`;
      option.selected = one.url === wanted;
      return option;
    }),
  );
  at("capture").disabled = all.length === 0;
  at("begin").hidden = Boolean(walk) || urls.length === 0;
  at("skip").hidden = at("stop").hidden = !walk;
  at("walking").hidden = !walk;
  at("walking").textContent = walk ? `Page ${walk.at + 1} of ${walk.all.length}, ${walk.done} captured` : "";
  at("capture").textContent = walk ? "Capture and continue" : "Capture this tab";
  compare();
}

async function show() {
  const current = await pairing();
  at("pair").hidden = Boolean(current);
  at("work").hidden = !current;
  if (!current) return;
  at("paired").textContent = `Paired with ${current.service} as ${current.by}, ${current.name}.`;
  [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
  const { walk, status } = await chrome.storage.session.get(["walk", "status"]);
  showStatus(status);
  try {
    urls = (await ask("flagged")).items;
    if (urls.length === 0 && !status) showStatus({ text: "No URL needs work." });
  } catch (error) {
    urls = [];
    showStatus({ text: error.message, kind: "wrong" });
  }
  renderChoices(walk ?? null);
  document.body.dataset.ready = "true";
}

at("pair").addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(event.target));
  runAction(event.submitter, async () => {
    await ask("pair", fields);
    event.target.reset();
    await chrome.storage.session.remove("status");
    await show();
  });
});
at("url").addEventListener("change", compare);
at("capture").addEventListener("click", (event) => runAction(event.target, async () => {
  await ask("capture", { url: at("url").value });
  await show();
}));
for (const act of ["begin", "skip", "stop"]) {
  at(act).addEventListener("click", (event) => runAction(event.target, async () => {
    await ask(act);
    await show();
  }));
}
at("unpair").addEventListener("click", (event) => runAction(event.target, async () => {
  await ask("unpair");
  await show();
  showStatus({ text: "This browser is no longer paired." });
}));
chrome.storage.session.onChanged.addListener((changes) => {
  if (changes.status) showStatus(changes.status.newValue);
});
show();
