// The popup: pairing, choosing the flagged URL that the tab shows, and the buttons. The worker does what they say.
import { pairing } from "./service.js";

const at = (id) => document.getElementById(id);
let tab = null;
let urls = [];

async function ask(act, more = {}) {
  const answer = await chrome.runtime.sendMessage({ act, ...more });
  if (answer?.error) throw Object.assign(new Error(answer.error), { status: answer.status });
  return answer?.value ?? {};
}

// Forgiving where it only chooses: the service decides by its own rules what is one page.
function plain(url) {
  try {
    const { host, pathname, search } = new URL(url);
    return `${host.replace(/^www\./, "")}${pathname.replace(/\/$/, "")}${search}`.toLowerCase();
  } catch {
    return url;
  }
}

function said({ text, kind } = {}) {
  at("status").textContent = text ?? "";
  at("status").className = kind === "wrong" ? "wrong" : "";
}

async function tried(button, act) {
  button.disabled = true;
  try {
    await act();
  } catch (error) {
    said({ text: error.message, kind: "wrong" });
    if (error.status === 401) await show();
  } finally {
    button.disabled = false;
  }
}

function compare() {
  const opens = urls.find((one) => one.url === at("url").value)?.opens ?? at("url").value;
  at("other").hidden = !tab?.url || !opens || plain(tab.url) === plain(opens);
}

function choices(walk) {
  const wanted = walk ? walk.all[walk.at].url : urls.find((one) => tab?.url && plain(one.opens) === plain(tab.url))?.url;
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
  at("walking").textContent = walk ? `Number ${walk.at + 1} of ${walk.all.length}, ${walk.done} captured` : "";
  at("capture").textContent = walk ? "Capture and go on" : "Capture this tab";
  compare();
}

async function show() {
  const kept = await pairing();
  at("pair").hidden = Boolean(kept);
  at("work").hidden = !kept;
  if (!kept) return;
  at("paired").textContent = `Paired with ${kept.service} as ${kept.by}, ${kept.name}.`;
  [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
  const { walk, status } = await chrome.storage.session.get(["walk", "status"]);
  said(status);
  try {
    urls = (await ask("flagged")).items;
    if (urls.length === 0 && !status) said({ text: "Nothing needs work." });
  } catch (error) {
    urls = [];
    said({ text: error.message, kind: "wrong" });
  }
  choices(walk ?? null);
  document.body.dataset.ready = "true";
}

at("pair").addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(event.target));
  tried(event.submitter, async () => {
    await ask("pair", fields);
    event.target.reset();
    await chrome.storage.session.remove("status");
    await show();
  });
});
at("url").addEventListener("change", compare);
at("capture").addEventListener("click", (event) => tried(event.target, async () => {
  await ask("capture", { url: at("url").value });
  await show();
}));
for (const act of ["begin", "skip", "stop"]) {
  at(act).addEventListener("click", (event) => tried(event.target, async () => {
    await ask(act);
    await show();
  }));
}
at("unpair").addEventListener("click", (event) => tried(event.target, async () => {
  await ask("unpair");
  await show();
  said({ text: "This browser is not paired any more." });
}));
chrome.storage.session.onChanged.addListener((changes) => {
  if (changes.status) said(changes.status.newValue);
});
show();
