"use strict";
const answers = [...document.querySelectorAll(".answer")];

// Screenshots: each is stored once and shown when it comes into view.
const thumbnails = JSON.parse(document.getElementById("thumbnails").textContent);
const show = (image) => { image.src = thumbnails[image.dataset.thumbnail]; };
const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
  show(entry.target);
  seen.unobserve(entry.target);
}), { rootMargin: "400px" });
const observe = (part) => part.querySelectorAll("img[data-thumbnail]").forEach((image) => seen.observe(image));
observe(document);

// Answers of a large report are compressed. Each is unpacked when it is opened.
const unpacked = async (answer) => {
  const packed = Uint8Array.from(atob(answer.querySelector(".packed").textContent), (char) => char.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
const fill = async (answer) => {
  const body = answer.querySelector(".answer-body");
  if (body.childElementCount || !answer.querySelector(".packed")) return;
  body.innerHTML = await unpacked(answer);
  observe(body);
};
answers.forEach((answer) => answer.addEventListener("toggle", () => { if (answer.open) fill(answer); }));
document.addEventListener("click", (event) => {
  const shot = event.target.closest(".shot");
  if (shot) shot.setAttribute("aria-expanded", shot.getAttribute("aria-expanded") !== "true");
});

// Table
const table = document.getElementById("scores");
const heads = [...table.tHead.rows[0].cells];
heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
  const ascending = head.getAttribute("aria-sort") === null ? column === 0 : head.getAttribute("aria-sort") !== "ascending";
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const value = (row) => row.cells[column].dataset.value;
  const compare = column === 0 ? (a, b) => value(a).localeCompare(value(b)) : (a, b) => Number(value(a)) - Number(value(b));
  const rows = [...table.tBodies[0].rows].sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
  table.tBodies[0].append(...rows);
}));

// Filter
const text = document.getElementById("filter-text");
const state = document.getElementById("filter-state");
const contents = new Map();
const decoder = document.createElement("textarea"); // decodes character references, much faster than a DOM parser
const contentOf = async (answer) => {
  if (!contents.has(answer)) {
    let content = answer.textContent;
    if (answer.querySelector(".packed")) {
      decoder.innerHTML = (await unpacked(answer)).replace(/<[^>]*>/g, "");
      content = `${answer.querySelector("h3").textContent} ${decoder.value}`;
    }
    contents.set(answer, content.toLowerCase());
  }
  return contents.get(answer);
};
let filters = 0;
const filter = async () => {
  const current = ++filters;
  const wanted = text.value.trim().toLowerCase();
  const shown = new Set();
  for (const answer of answers) {
    const isWanted = !state.value || answer.dataset.states.split(" ").includes(state.value);
    if (isWanted && (!wanted || (await contentOf(answer)).includes(wanted))) shown.add(answer.id);
    if (current !== filters) return; // the filter changed meanwhile
  }
  answers.forEach((answer) => { answer.hidden = !shown.has(answer.id); });
  for (const row of table.tBodies[0].rows) {
    const ids = row.dataset.answers.trim();
    row.hidden = ids ? !ids.split(" ").some((id) => shown.has(id)) : state.value || !row.dataset.task.toLowerCase().includes(wanted);
  }
  document.getElementById("filter-count").textContent = `${shown.size} of ${answers.length} answers`;
  document.getElementById("nothing").hidden = shown.size > 0;
};
text.addEventListener("input", filter);
state.addEventListener("change", filter);
document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select") && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    text.focus();
  }
});

// Links into answers open them.
const follow = async () => {
  const id = decodeURIComponent(location.hash.slice(1));
  const answer = document.getElementById(id.split("-")[0]);
  if (answer?.matches(".answer")) await fill(answer);
  const target = document.getElementById(id);
  if (!target) return;
  for (let outer = target; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
  target.scrollIntoView();
  (target.querySelector(":scope > summary") ?? target).focus({ preventScroll: true });
};
window.addEventListener("hashchange", follow);
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.hash === location.hash) follow();
});
follow();

document.getElementById("open-all").addEventListener("click", () => answers.forEach((answer) => { answer.open = !answer.hidden || answer.open; }));
document.getElementById("close-all").addEventListener("click", () => answers.forEach((answer) => { answer.open = false; }));
window.addEventListener("beforeprint", () => document.querySelectorAll("img[data-thumbnail]").forEach(show));
