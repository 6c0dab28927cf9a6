// The three panels of pages: choosing, mending, undoing, and the keys for it. Every act is a form of the page; here it
// is sent without leaving the page, and the panels are asked for anew.
import { takeDrops } from "./repair.js";

const AT_ONCE = 3;
// Never ``form.action``: these forms have a field of that name.
const HEADERS = { "HX-Request": "true" };

export function workshop(panels) {
  const lists = document.getElementById("lists");
  const preview = document.getElementById("preview");
  const bar = document.getElementById("pages-said");
  const forecast = document.getElementById("pages-forecast");
  const help = document.getElementById("keys-help");
  const token = panels.dataset.formToken;
  const state = { task: panels.dataset.task, show: panels.dataset.show, view: panels.dataset.view };
  const done = bar.dataset.done ? [bar.dataset.done] : []; // changes that can be undone, the last one last
  const repaired = new Set();
  let url = preview.querySelector("[data-url]")?.dataset.url ?? "";
  let asked = 0;
  let foretold = 0;

  const rows = () => [...lists.querySelectorAll("[data-key]")];
  const row = () => rows().find((one) => one.dataset.url === url);
  const query = (more = {}) => new URLSearchParams({ ...state, ...more }).toString();

  // What is said stays until something else is; ``undo`` is a change that can be taken back from there.
  function say(text, undo) {
    const words = document.createElement("span");
    words.textContent = text;
    bar.replaceChildren(words);
    if (!undo) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Undo";
    button.addEventListener("click", takeBack);
    bar.append(button);
  }

  async function ask(address, options = {}) {
    let answer;
    try {
      answer = await fetch(address, { ...options, headers: HEADERS });
    } catch {
      throw new Error("The service does not answer.");
    }
    if (answer.headers.get("HX-Redirect")) {
      location.assign(answer.headers.get("HX-Redirect"));
      throw new Error("Sign in.");
    }
    if (answer.ok) return answer;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const lines = [...page.querySelectorAll("main h1, main h1 ~ p, main .notice")].map((line) => line.textContent.trim());
    throw new Error(lines.find(Boolean) ?? `The service answered ${answer.status}.`);
  }

  const html = async (address) => (await ask(address)).text();
  const send = async (address, body) => (await ask(address, { method: "POST", body })).json();

  function form(fields) {
    const body = new FormData();
    body.append("form_token", token);
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    return body;
  }

  // All that fails is said, and nothing else happens.
  async function tried(act) {
    panels.setAttribute("aria-busy", "true");
    try {
      return await act();
    } catch (error) {
      say(error.message);
      return null;
    } finally {
      panels.removeAttribute("aria-busy");
    }
  }

  function point() {
    for (const one of lists.querySelectorAll(".cited a[aria-current]")) one.removeAttribute("aria-current");
    const link = row()?.querySelector("a");
    link?.setAttribute("aria-current", "true");
    link?.scrollIntoView({ block: "nearest" });
    return link;
  }

  async function showPreview() {
    const now = ++asked;
    if (!url) {
      preview.replaceChildren();
      return;
    }
    const text = await html(`/pages/preview?${query({ url })}`);
    if (now !== asked) return; // another one was chosen meanwhile
    preview.innerHTML = text;
    equip();
  }

  async function choose(target, { focus = true } = {}) {
    url = target;
    history.replaceState(null, "", `/pages?${query({ url })}`);
    const link = point();
    if (focus) link?.focus({ preventScroll: true });
    await tried(showPreview);
  }

  async function refresh() {
    lists.innerHTML = await html(`/pages/lists?${query({ url })}`);
    readyLists();
    if (url && !row() && state.show !== "deleted") url = rows()[0]?.dataset.url ?? "";
    point();
    await showPreview();
  }

  // First what it took last time, which is known at once; then what the service reckons, which may take a while.
  async function showForecast() {
    const wanted = [...repaired].slice(-100);
    const now = ++foretold;
    for (const exact of ["false", "true"]) {
      if (wanted.length === 0) return;
      const query = new URLSearchParams([...wanted.map((one) => ["url", one]), ["exact", exact]]);
      const text = await html(`/pages/forecast?${query}`).catch(() => null);
      if (text === null || now !== foretold || repaired.size === 0) return;
      forecast.innerHTML = text;
      const again = forecast.querySelector("form");
      if (!again) return;
      takeForm(again);
    }
  }

  async function happened(answer) {
    if (answer.done) done.push(answer.done);
    if (answer.repaired) repaired.add(answer.url || url);
    if (answer.url) url = answer.url;
    await refresh();
    say(answer.said, answer.done);
    showForecast();
  }

  const submit = (target) => tried(async () => happened(await send(target.getAttribute("action"), new FormData(target))));

  async function takeBack() {
    const last = done.pop();
    if (!last) {
      say("There is nothing to undo. What was done with a URL stands below its preview.");
      return;
    }
    await tried(async () => happened(await send(`/pages/changes/${last}/undo`, form({}))));
  }

  function takeForm(target) {
    target.addEventListener("submit", (event) => {
      event.preventDefault();
      if (target.dataset.judgeAgain === undefined) submit(target);
      else tried(async () => {
        const answer = await send(target.getAttribute("action"), new FormData(target));
        repaired.clear();
        forecast.replaceChildren();
        say(answer.said);
      });
    });
  }

  function readyLists() {
    for (const target of lists.querySelectorAll("form[data-change]")) takeForm(target);
    const button = lists.querySelector("[data-recapture-flagged]");
    button.hidden = !lists.querySelector("[data-needs-work]");
    button.addEventListener("click", captureFlagged);
  }

  function equip() {
    for (const target of preview.querySelectorAll("form")) takeForm(target);
    const hand = preview.querySelector("[data-hand-in]");
    if (!hand) return;
    takeDrops(hand, () => submit(hand));
    hand.elements.file.addEventListener("change", () => { if (hand.elements.file.files.length) submit(hand); });
  }

  // All that needs work, a few at a time, what matters most first.
  async function captureFlagged() {
    const line = lists.querySelector("[data-recapturing]");
    const meter = line.querySelector("progress");
    const said = line.querySelector("[data-progress]");
    lists.querySelector("[data-recapture-flagged]").hidden = true;
    line.hidden = false;
    let stopped = false;
    line.querySelector("[data-stop]").addEventListener("click", () => { stopped = true; });
    await tried(async () => {
      const all = await (await ask(`/pages/work?${query()}`)).json();
      const count = { done: 0, repaired: 0, failed: 0 };
      const waiting = [...all];
      const tell = () => {
        meter.max = Math.max(all.length, 1);
        meter.value = count.done;
        said.textContent = `${count.done} of ${all.length} captured again, ${count.repaired} repaired`;
      };
      async function work() {
        while (waiting.length && !stopped) {
          const one = waiting.shift();
          try {
            const answer = await send(`/pages/${one.page}/recapture`, form({}));
            if (answer.repaired) { count.repaired += 1; repaired.add(one.url); }
          } catch { count.failed += 1; }
          count.done += 1;
          tell();
        }
      }
      tell();
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      await refresh();
      const left = count.done - count.repaired;
      say(`${stopped ? "Stopped: " : ""}${count.done} of ${all.length} captured again: ${count.repaired} repaired, ${left} still a problem`);
      showForecast();
    });
  }

  // To the next or previous row; ``work``: only among those that need work. Its URL, if there is one.
  function beside(by, work) {
    const all = rows();
    const at = all.findIndex((one) => one.dataset.url === url);
    for (let step = 1; step <= all.length; step += 1) {
      const one = all[(((at < 0 && by < 0 ? 0 : at) + by * step) % all.length + all.length) % all.length];
      if (!work || one.dataset.needsWork !== undefined) return one.dataset.url;
    }
    return null;
  }

  function step(by, work) {
    const target = beside(by, work);
    if (target === null) say(work ? "Nothing needs work here." : "There is no URL here.");
    else choose(target);
  }

  const does = (...actions) => actions.map((one) => preview.querySelector(`form[data-does="${one}"]`)).find(Boolean);

  async function reviewed() {
    const target = does("review", "unreview");
    if (!target) return;
    const going = target.dataset.does === "review" ? beside(1, true) : null;
    await submit(target);
    if (going !== null && going !== url) await choose(going);
  }

  function opened(selector, field) {
    const details = document.querySelector(selector);
    if (!details) return;
    details.open = true;
    details.querySelector(field).focus();
    details.querySelector(field).select();
  }

  function view(name) {
    state.view = name;
    history.replaceState(null, "", `/pages?${query({ url })}`);
    tried(showPreview);
  }

  const keys = {
    j: () => step(1, false),
    k: () => step(-1, false),
    n: () => step(1, true),
    N: () => step(-1, true),
    1: () => view("screenshot"),
    2: () => view("text"),
    3: () => view("answer"),
    r: () => preview.querySelector("[data-recapture-one]")?.requestSubmit(),
    x: () => preview.querySelector("[data-hand-in]")?.elements.file.click(),
    f: () => does("flag", "unflag")?.requestSubmit(),
    d: () => does("delete")?.requestSubmit(),
    e: () => opened("#preview details.edit", 'input[name="to"]'),
    a: () => (lists.querySelector("details.add") ? opened("#lists details.add", 'input[name="url"]') : say("Choose a task first: a URL is added to a task's list.")),
    u: takeBack,
    o: () => preview.querySelector("[data-open]")?.click(),
    " ": reviewed,
    "?": () => { help.open = !help.open; if (help.open) help.scrollIntoView({ block: "nearest" }); },
  };

  // Single keys can get in the way of speech input and of switches, so they can be turned off.
  const keysOn = document.getElementById("keys-on");
  keysOn.checked = localStorage.getItem("single-keys") !== "off";
  keysOn.addEventListener("change", () => localStorage.setItem("single-keys", keysOn.checked ? "on" : "off"));

  document.addEventListener("keydown", (event) => {
    if (!keysOn.checked || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    if (event.key === " " && event.target.closest("button, summary, a:not(.cited a), [tabindex='0']")) return;
    if (!Object.hasOwn(keys, event.key) || (event.repeat && !"jknN".includes(event.key))) return;
    event.preventDefault();
    keys[event.key]();
  });

  document.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    const tab = event.target.closest("#preview [data-view]");
    const link = event.target.closest(".cited a");
    if (!tab && !link) return;
    event.preventDefault();
    if (tab) view(tab.dataset.view);
    else choose(link.closest("[data-key]").dataset.url, { focus: false });
  });

  for (const target of bar.querySelectorAll("form")) {
    target.addEventListener("submit", (event) => { event.preventDefault(); takeBack(); });
  }
  readyLists();
  equip();
}
