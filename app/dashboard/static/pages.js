// The three panels at /pages: selection, repair, undo and keys. Every action is a form of the page. This script sends
// the form without leaving the page and then reloads the panels.
import { listenForKeys } from "./keys.js";
import { acceptDrops } from "./repair.js";

const AT_ONCE = 3;
// Do not use ``form.action``: these forms have a field with this name.
const HEADERS = { "HX-Request": "true" };

export function startPanels(panels) {
  const lists = document.getElementById("lists");
  const preview = document.getElementById("preview");
  const bar = document.getElementById("pages-message");
  const rejudge = document.getElementById("pages-rejudge");
  const token = panels.dataset.formToken;
  const state = { task: panels.dataset.task, show: panels.dataset.show, view: panels.dataset.view };
  const undoableChanges = bar.dataset.done ? [bar.dataset.done] : []; // ids of changes that can be undone, newest last
  const repaired = new Set();
  let url = preview.querySelector("[data-url]")?.dataset.url ?? "";
  let previewRequest = 0;
  let rejudgeRequest = 0;

  const rows = () => [...lists.querySelectorAll("[data-key]")];
  const row = () => rows().find((one) => one.dataset.url === url);
  const query = (more = {}) => new URLSearchParams({ ...state, ...more }).toString();

  // Show a message until the next one, with an undo button if ``undo`` is set.
  function showMessage(text, undo) {
    const message = document.createElement("span");
    message.textContent = text;
    bar.replaceChildren(message);
    if (!undo) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Undo";
    button.addEventListener("click", undoLast);
    bar.append(button);
  }

  async function request(address, options = {}) {
    let response;
    try {
      response = await fetch(address, { ...options, headers: HEADERS });
    } catch {
      throw new Error("The service does not respond.");
    }
    if (response.headers.get("HX-Redirect")) {
      location.assign(response.headers.get("HX-Redirect"));
      throw new Error("You are not signed in.");
    }
    if (response.ok) return response;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const lines = [...page.querySelectorAll("main h1, main h1 ~ p, main .notice")].map((line) => line.textContent.trim());
    throw new Error(lines.find(Boolean) ?? `The service returned HTTP ${response.status}.`);
  }

  const html = async (address) => (await request(address)).text();
  const send = async (address, body) => (await request(address, { method: "POST", body })).json();

  function form(fields) {
    const body = new FormData();
    body.append("form_token", token);
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    return body;
  }

  // Run an action; show its error as a message.
  async function attempt(action) {
    panels.setAttribute("aria-busy", "true");
    try {
      return await action();
    } catch (error) {
      showMessage(error.message);
      return null;
    } finally {
      panels.removeAttribute("aria-busy");
    }
  }

  function markSelected() {
    for (const one of lists.querySelectorAll(".cited a[aria-current]")) one.removeAttribute("aria-current");
    const link = row()?.querySelector("a");
    link?.setAttribute("aria-current", "true");
    link?.scrollIntoView({ block: "nearest" });
    return link;
  }

  async function showPreview() {
    const current = ++previewRequest;
    if (!url) {
      preview.replaceChildren();
      return;
    }
    const text = await html(`/pages/preview?${query({ url })}`);
    if (current !== previewRequest) return; // another URL was selected meanwhile
    preview.innerHTML = text;
    connectPreview();
  }

  async function select(target, { focus = true } = {}) {
    url = target;
    history.replaceState(null, "", `/pages?${query({ url })}`);
    const link = markSelected();
    if (focus) link?.focus({ preventScroll: true });
    await attempt(showPreview);
  }

  async function refresh() {
    lists.innerHTML = await html(`/pages/lists?${query({ url })}`);
    connectLists();
    if (url && !row() && state.show !== "deleted") url = rows()[0]?.dataset.url ?? "";
    markSelected();
    await showPreview();
  }

  // Show the claims that the repaired pages affect, with the cost of their last judging.
  async function showRejudge() {
    const urls = [...repaired].slice(-100);
    if (urls.length === 0) return;
    const current = ++rejudgeRequest;
    const text = await html(`/pages/dependents?${new URLSearchParams(urls.map((one) => ["url", one]))}`).catch(() => null);
    if (text === null || current !== rejudgeRequest || repaired.size === 0) return;
    rejudge.innerHTML = text;
    const again = rejudge.querySelector("form");
    if (again) interceptForm(again);
  }

  async function applyOutcome(outcome) {
    if (outcome.done) undoableChanges.push(outcome.done);
    if (outcome.repaired) repaired.add(outcome.url || url);
    if (outcome.url) url = outcome.url;
    await refresh();
    showMessage(outcome.message, outcome.done);
    showRejudge();
  }

  const submit = (target) => attempt(async () => applyOutcome(await send(target.getAttribute("action"), new FormData(target))));

  async function undoLast() {
    const last = undoableChanges.pop();
    if (!last) {
      showMessage("There is nothing to undo. Earlier changes of a URL are listed below its preview.");
      return;
    }
    await attempt(async () => applyOutcome(await send(`/pages/changes/${last}/undo`, form({}))));
  }

  function interceptForm(target) {
    target.addEventListener("submit", (event) => {
      event.preventDefault();
      if (target.dataset.judgeAgain === undefined) submit(target);
      else attempt(async () => {
        const outcome = await send(target.getAttribute("action"), new FormData(target));
        repaired.clear();
        rejudge.replaceChildren();
        showMessage(outcome.message);
      });
    });
  }

  function connectLists() {
    for (const target of lists.querySelectorAll("form[data-change]")) interceptForm(target);
    const button = lists.querySelector("[data-recapture-flagged]");
    button.hidden = !lists.querySelector("[data-needs-work]");
    button.addEventListener("click", captureFlagged);
  }

  function connectPreview() {
    for (const target of preview.querySelectorAll("form")) interceptForm(target);
    const upload = preview.querySelector("[data-upload]");
    if (!upload) return;
    acceptDrops(upload, () => submit(upload));
    upload.elements.file.addEventListener("change", () => { if (upload.elements.file.files.length) submit(upload); });
  }

  // Capture all URLs that need work, AT_ONCE at a time, most important first.
  async function captureFlagged() {
    const line = lists.querySelector("[data-recapturing]");
    const meter = line.querySelector("progress");
    const status = line.querySelector("[data-progress]");
    lists.querySelector("[data-recapture-flagged]").hidden = true;
    line.hidden = false;
    let stopped = false;
    line.querySelector("[data-stop]").addEventListener("click", () => { stopped = true; });
    await attempt(async () => {
      const all = await (await request(`/pages/work?${query()}`)).json();
      const count = { done: 0, repaired: 0, failed: 0 };
      const waiting = [...all];
      const showProgress = () => {
        meter.max = Math.max(all.length, 1);
        meter.value = count.done;
        status.textContent = `${count.done} of ${all.length} captured again, ${count.repaired} repaired`;
      };
      async function work() {
        while (waiting.length && !stopped) {
          const one = waiting.shift();
          try {
            const outcome = await send(`/pages/${one.page}/recapture`, form({}));
            if (outcome.repaired) { count.repaired += 1; repaired.add(one.url); }
          } catch { count.failed += 1; }
          count.done += 1;
          showProgress();
        }
      }
      showProgress();
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      await refresh();
      const left = count.done - count.repaired;
      showMessage(`${stopped ? "Stopped: " : ""}${count.done} of ${all.length} captured again: ${count.repaired} repaired, ${left} still a problem`);
      showRejudge();
    });
  }

  // Return the URL of the next or previous row; with ``needsWork``, of the next row that needs work; null if there is none.
  function neighbour(offset, needsWork) {
    const all = rows();
    const at = all.findIndex((one) => one.dataset.url === url);
    for (let step = 1; step <= all.length; step += 1) {
      const one = all[(((at < 0 && offset < 0 ? 0 : at) + offset * step) % all.length + all.length) % all.length];
      if (!needsWork || one.dataset.needsWork !== undefined) return one.dataset.url;
    }
    return null;
  }

  function step(offset, needsWork) {
    const target = neighbour(offset, needsWork);
    if (target === null) showMessage(needsWork ? "No URL needs work." : "The list is empty.");
    else select(target);
  }

  const actionForm = (...actions) => actions.map((one) => preview.querySelector(`form[data-action="${one}"]`)).find(Boolean);

  async function toggleReviewed() {
    const target = actionForm("review", "unreview");
    if (!target) return;
    const next = target.dataset.action === "review" ? neighbour(1, true) : null;
    await submit(target);
    if (next !== null && next !== url) await select(next);
  }

  function openForm(selector, field) {
    const details = document.querySelector(selector);
    if (!details) return;
    details.open = true;
    details.querySelector(field).focus();
    details.querySelector(field).select();
  }

  function view(name) {
    state.view = name;
    history.replaceState(null, "", `/pages?${query({ url })}`);
    attempt(showPreview);
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
    x: () => preview.querySelector("[data-upload]")?.elements.file.click(),
    f: () => actionForm("flag", "unflag")?.requestSubmit(),
    d: () => actionForm("delete")?.requestSubmit(),
    e: () => openForm("#preview details.edit", 'input[name="to"]'),
    a: () => (lists.querySelector("details.add") ? openForm("#lists details.add", 'input[name="url"]') : showMessage("Select a task first. URLs are added to one task.")),
    u: undoLast,
    o: () => preview.querySelector("[data-open]")?.click(),
    " ": toggleReviewed,
  };
  const usesSpace = (event) => event.key === " " && event.target.closest("button, summary, a:not(.cited a), [tabindex='0']");
  listenForKeys(keys, { usesKey: usesSpace });

  document.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    const tab = event.target.closest("#preview [data-view]");
    const link = event.target.closest(".cited a");
    if (!tab && !link) return;
    event.preventDefault();
    if (tab) view(tab.dataset.view);
    else select(link.closest("[data-key]").dataset.url, { focus: false });
  });

  for (const target of bar.querySelectorAll("form")) {
    target.addEventListener("submit", (event) => { event.preventDefault(); undoLast(); });
  }
  connectLists();
  connectPreview();
}
