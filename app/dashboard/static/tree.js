// Result page: selection of leaves, rows of the tree that are loaded on demand, folding, and keys.
import { listenForKeys } from "./keys.js";

export function startTree(tree) {
  const detail = document.getElementById("detail");
  const prose = document.querySelector(".prose");
  const missedButton = document.querySelector('[data-tree="missed"]');
  const address = `/results/${tree.dataset.result}`;
  const view = { show: "all", expand: "false" };
  let request = 0;

  const linkOf = (row) => row.querySelector("[data-leaf]");
  const rowOf = (key) => document.getElementById(key)?.closest("#tree .node");
  const selected = () => tree.querySelector('[aria-current="true"]');
  const panel = () => detail.querySelector(".leaf-panel");

  function fold(row, open) {
    row.querySelector(".fold")?.setAttribute("aria-expanded", String(open));
    const below = row.nextElementSibling;
    if (below) below.hidden = !open;
  }

  function reveal(row) {
    for (let list = row.closest("ul"); list !== tree; list = list.parentElement.closest("ul")) {
      fold(list.previousElementSibling, true);
    }
  }

  function markSelected(key) {
    const before = selected();
    before?.removeAttribute("aria-current");
    before?.closest(".node").classList.remove("chosen");
    const row = rowOf(key);
    if (!row) return;
    reveal(row);
    row.classList.add("chosen");
    linkOf(row).setAttribute("aria-current", "true");
    const box = row.getBoundingClientRect();
    const frame = tree.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom) tree.scrollTop += box.top - frame.top - tree.clientHeight / 3;
  }

  async function rows(params) {
    const response = await fetch(`${address}/tree?${new URLSearchParams({ ...view, ...params })}`, { headers: { "HX-Request": "true" } });
    if (response.headers.get("HX-Redirect")) location.assign(response.headers.get("HX-Redirect"));
    return response.ok ? response.text() : null;
  }

  // Load the tree anew with the path to one leaf, for another view or if the leaf is not loaded.
  async function loadTree(key) {
    const html = await rows(key ? { leaf: key } : {});
    if (html === null) return;
    tree.innerHTML = html;
    watchUnloaded();
  }

  async function loadSection(item) {
    const link = item.firstElementChild;
    if (item.dataset.loading) return;
    item.dataset.loading = "true";
    const html = await rows({ group: link.dataset.group, at: link.dataset.at, earlier: String("earlier" in link.dataset) });
    if (html === null) {
      delete item.dataset.loading;
      return;
    }
    const key = selected()?.dataset.leaf;
    item.insertAdjacentHTML("beforebegin", html);
    item.remove();
    if (key) markSelected(key);
    watchUnloaded();
  }

  // Rows that are not loaded yet are loaded shortly before they scroll into view.
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) loadSection(entry.target);
  }, { root: tree, rootMargin: "400px" });

  function watchUnloaded() {
    for (const item of tree.querySelectorAll(".unloaded")) observer.observe(item);
  }

  async function select(key, { push = true, focus = false } = {}) {
    const current = ++request;
    if (push) history.pushState({ leaf: key }, "", `${address}?leaf=${encodeURIComponent(key)}`);
    if (!rowOf(key)) await loadTree(key);
    if (current !== request) return;
    markSelected(key);
    if (focus) rowOf(key) && linkOf(rowOf(key)).focus({ preventScroll: true });
    await htmx.ajax("GET", `${address}/leaf?leaf=${encodeURIComponent(key)}`, { target: detail, swap: "innerHTML" });
    highlightEvidence();
    const top = detail.getBoundingClientRect().top;
    if (top > innerHeight * 0.7 || top < 0) detail.scrollIntoView({ block: "start" });
    detail.scrollTop = 0;
  }

  // Announce the selected leaf, highlight its sentences in the answer and scroll to its quotes in the screenshots.
  function highlightEvidence() {
    const key = panel()?.dataset.key;
    const row = key && rowOf(key);
    if (row) document.getElementById("announcement").textContent = `${key}, ${row.querySelector(".unseen").textContent}`;
    const wanted = new Set((panel()?.dataset.cites ?? "").split(" ").filter(Boolean));
    let first = null;
    for (const span of document.querySelectorAll(".prose [data-cites]")) {
      const on = span.dataset.cites.split(" ").some((mark) => wanted.has(mark));
      span.classList.toggle("on", on);
      if (on) first ??= span;
    }
    if (first && prose) prose.scrollTop += first.getBoundingClientRect().top - prose.getBoundingClientRect().top - 40;
    for (const shots of detail.querySelectorAll("[data-offset]")) {
      const shot = shots.querySelector(`[data-number="${shots.dataset.firstScreenshot}"]`);
      const move = () => {
        const down = shot.getBoundingClientRect().top - shots.getBoundingClientRect().top + shots.scrollTop;
        shots.scrollTop = down + Number(shots.dataset.offset) * shot.offsetHeight - shots.clientHeight / 3;
      };
      for (const image of shots.querySelectorAll("img")) {
        if (image.complete) move();
        else image.addEventListener("load", move, { once: true });
      }
    }
  }

  async function showOnly(show) {
    view.show = show;
    for (const button of document.querySelectorAll("[data-tree][aria-pressed]")) {
      button.setAttribute("aria-pressed", String(button.dataset.tree === show));
    }
    const key = panel()?.dataset.key;
    await loadTree(key);
    if (key) markSelected(key);
  }

  function foldAll(open) {
    view.expand = String(open);
    for (const row of tree.querySelectorAll(".node:not(.leaf)")) {
      fold(row, open || row.parentElement.parentElement === tree);
    }
  }

  const toggleMissed = () => showOnly(view.show === "missed" ? "all" : "missed");
  const actions = { missed: toggleMissed, open: () => foldAll(true), close: () => foldAll(false) };

  // Follow a step of the panel, for example to the next leaf that did not pass. At the end, nothing happens.
  function step(name) {
    const key = panel()?.getAttribute(`data-${view.show === "missed" ? name.replace("-missed", "") + "-missed" : name}`);
    if (key) select(key, { focus: true });
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("#tree .fold");
    if (button) fold(button.closest(".node"), button.getAttribute("aria-expanded") !== "true");
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = event.target.closest("[data-leaf]");
    const unloaded = event.target.closest("#tree .unloaded");
    if (!link && !unloaded) return;
    event.preventDefault();
    if (link) select(link.dataset.leaf);
    else loadSection(unloaded);
  });
  for (const button of document.querySelectorAll("[data-tree]")) {
    button.addEventListener("click", () => actions[button.dataset.tree](button));
  }
  listenForKeys({
    j: () => step("next"),
    k: () => step("previous"),
    n: () => step("next-missed"),
    N: () => step("previous-missed"),
    f: () => missedButton && toggleMissed(),
    o: () => detail.querySelector("[data-open]")?.click(),
  });

  const fromAddress = () => new URLSearchParams(location.search).get("leaf");
  window.addEventListener("popstate", () => {
    const key = fromAddress();
    if (key) select(key, { push: false });
    else if (!location.hash) location.reload();
  });
  const followHash = () => {
    const key = decodeURIComponent(location.hash.slice(1));
    const isRow = document.getElementById(key) ? rowOf(key) : tree.querySelector(".unloaded");
    if (key && isRow) select(key, { push: false });
  };
  window.addEventListener("hashchange", followHash);

  watchUnloaded();
  const initial = panel()?.dataset.key;
  if (initial) {
    markSelected(initial);
    highlightEvidence();
  }
  if (location.hash === "#detail") detail.scrollIntoView({ block: "nearest" });
  else followHash();
}
