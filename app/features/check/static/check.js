/* Selects a statement of the report and shows its panel. Without this script all panels are listed. */
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const texts = new Map();
  for (const span of document.querySelectorAll("[data-statement]")) {
    const number = span.dataset.statement;
    texts.set(number, [...(texts.get(number) ?? []), span]);
  }
  const buttons = new Map();
  for (const button of document.querySelectorAll(".at")) buttons.set(button.dataset.number, button);
  const numbers = [...buttons.keys()];
  let current = null;

  const isNarrow = () => matchMedia("(max-width: 60rem)").matches;

  function select(number, focus, isFirst) {
    for (const old of document.querySelectorAll(".selected")) old.classList.remove("selected");
    current = number;
    root.classList.toggle("open", number !== null);
    const panel = number === null ? null : document.getElementById(`s${number}`);
    if (!panel) return;
    panel.classList.add("selected");
    panel.parentElement.scrollTop = 0;
    for (const span of texts.get(number) ?? []) span.classList.add("selected");
    for (const [each, button] of buttons) {
      if (each === number) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    if (!isFirst) history.replaceState(null, "", `#s${number}`); // during loading, the browser would scroll to it
    const button = buttons.get(number);
    if (focus) button.focus({ preventScroll: true });
    if (isNarrow()) (texts.get(number)?.[0] ?? button).scrollIntoView({ block: "start" }); // above the panel
    else if (focus) button.scrollIntoView({ block: "center" });
  }

  function step(by, allowed) {
    if (!numbers.length) return;
    let index = current === null ? (by > 0 ? -1 : numbers.length) : numbers.indexOf(current);
    for (let count = 0; count < numbers.length; count += 1) {
      index = (index + by + numbers.length) % numbers.length;
      if (allowed(buttons.get(numbers[index]).dataset.outcome)) { select(numbers[index], true); return; }
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".at");
    const span = event.target.closest("[data-statement]");
    if (button) { event.preventDefault(); select(button.dataset.number, false); }
    else if (span && !event.target.closest("a")) select(span.dataset.statement, false);
    else if (event.target.closest(".back")) { event.preventDefault(); const last = buttons.get(current); select(null); last?.focus(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") step(1, () => true);
    else if (event.key === "k") step(-1, () => true);
    else if (event.key === "f") step(1, (outcome) => outcome !== "supported");
    else if (event.key === "Escape") select(null);
  });
  for (const filter of document.querySelectorAll(".filter")) {
    filter.addEventListener("click", () => {
      filter.setAttribute("aria-pressed", String(filter.getAttribute("aria-pressed") !== "true"));
      const chosen = new Set([...document.querySelectorAll('.filter[aria-pressed="true"]')].map((one) => one.dataset.outcome));
      for (const [number, button] of buttons) {
        const dim = chosen.size > 0 && !chosen.has(button.dataset.outcome);
        for (const each of [button, ...(texts.get(number) ?? [])]) each.classList.toggle("dim", dim);
      }
    });
  }
  const linked = location.hash.match(/^#s(\d+)$/);
  const problem = numbers.find((number) => buttons.get(number).dataset.outcome !== "supported");
  if (linked && buttons.has(linked[1])) select(linked[1], true);
  else if (problem !== undefined && !isNarrow()) select(problem, false, true);
})();
