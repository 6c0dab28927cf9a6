// Result page: leaf selection, collapsing the tree, failures first, and keys.

export function startTree(tree) {
  const detail = document.getElementById("detail");
  const prose = document.querySelector(".prose");
  const originalOrder = new Map(); // items of each list in the order of the tree

  const leaves = () => [...tree.querySelectorAll(".leaf")].filter((row) => row.checkVisibility());
  const linkOf = (row) => row.querySelector("[data-leaf]");
  const rowOf = (key) => document.getElementById(key)?.closest("#tree .node");
  const selected = () => tree.querySelector('[aria-current="true"]');

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
    row.scrollIntoView({ block: "nearest" });
  }

  async function select(key, { push = true } = {}) {
    markSelected(key);
    const address = `/results/${tree.dataset.result}`;
    if (push) history.pushState({ leaf: key }, "", `${address}?leaf=${encodeURIComponent(key)}`);
    await htmx.ajax("GET", `${address}/leaf?leaf=${encodeURIComponent(key)}`, { target: detail, swap: "innerHTML" });
    highlightEvidence();
    if (detail.getBoundingClientRect().top > innerHeight * 0.7) detail.scrollIntoView({ block: "start" });
    else detail.scrollTop = 0;
  }

  // Single-letter keys can conflict with speech input and switch devices, so they can be disabled.
  const keysOn = document.getElementById("keys-on");
  keysOn.checked = localStorage.getItem("single-keys") !== "off";
  keysOn.addEventListener("change", () => localStorage.setItem("single-keys", keysOn.checked ? "on" : "off"));

  // Announce the selected leaf, highlight its sentences in the answer and scroll to its quotes in the screenshots.
  function highlightEvidence() {
    const panel = detail.querySelector(".leaf-panel");
    const row = panel && rowOf(panel.dataset.key);
    if (row) document.getElementById("announcement").textContent = `${panel.dataset.key}, ${row.querySelector(".unseen").textContent}`;
    const wanted = new Set((panel?.dataset.cites ?? "").split(" ").filter(Boolean));
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

  function failuresFirst(on) {
    for (const list of [tree, ...tree.querySelectorAll("ul")]) {
      if (!originalOrder.has(list)) originalOrder.set(list, [...list.children]);
      const order = [...originalOrder.get(list)];
      if (on) order.sort((one, other) => one.dataset.rank - other.dataset.rank);
      if (order.some((item, place) => item !== list.children[place])) list.append(...order);
    }
    if (!on) return;
    for (const item of tree.querySelectorAll('[data-state="failed"], [data-state="not_judged"]')) {
      const row = item.firstElementChild;
      if (row.classList.contains("leaf")) reveal(row);
    }
  }

  function foldAll(open) {
    for (const row of tree.querySelectorAll(".node:not(.leaf)")) {
      fold(row, open || row.parentElement.parentElement === tree);
    }
  }

  const actions = {
    failures: (button) => failuresFirst(toggled(button)),
    missed: (button) => tree.classList.toggle("missed", toggled(button)),
    open: () => foldAll(true),
    close: () => foldAll(false),
  };

  // Select the next or previous visible leaf; with ``missesOnly``, the next one that did not pass.
  function step(offset, missesOnly) {
    const here = selected()?.closest(".leaf");
    const all = leaves().filter((row) => !missesOnly || row === here || row.parentElement.dataset.state !== "passed");
    if (all.length === 0) return;
    const at = all.indexOf(here);
    const next = linkOf(all[at < 0 ? 0 : (at + offset + all.length) % all.length]);
    next.focus({ preventScroll: true });
    select(next.dataset.leaf);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("#tree .fold");
    if (button) fold(button.closest(".node"), button.getAttribute("aria-expanded") !== "true");
    const link = event.target.closest("[data-leaf]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    select(link.dataset.leaf);
  });
  for (const button of document.querySelectorAll("[data-tree]")) {
    button.addEventListener("click", () => actions[button.dataset.tree](button));
  }
  document.addEventListener("keydown", (event) => {
    if (!keysOn.checked || event.target.closest("input, select, textarea") || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "j") step(1, false);
    else if (event.key === "k") step(-1, false);
    else if (event.key === "n") step(1, true);
    else if (event.key === "f") document.querySelector('[data-tree="failures"]').click();
  });

  const fromAddress = () => new URLSearchParams(location.search).get("leaf");
  window.addEventListener("popstate", () => {
    const key = fromAddress();
    if (key) select(key, { push: false });
  });
  const followHash = () => {
    const key = decodeURIComponent(location.hash.slice(1));
    if (key && rowOf(key)) select(key, { push: false });
  };
  window.addEventListener("hashchange", followHash);

  const initial = fromAddress();
  if (initial) {
    markSelected(initial);
    highlightEvidence();
    if (location.hash === "#detail") detail.scrollIntoView({ block: "nearest" });
  } else followHash();
}

function toggled(button) {
  const on = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(on));
  return on;
}
