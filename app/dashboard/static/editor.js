// Task editor: checks the form on the server while it is edited, and warns before changes are lost.

const DELAY_MS = 400;

export function startEditor(form) {
  const state = document.getElementById("edit-state");
  if (!state) return; // read-only
  let timer = 0;
  let request = new AbortController();
  let changed = "changed" in form.dataset;

  form.addEventListener("input", (event) => {
    if (event.target.name === "answer") return;
    changed = true;
    clearTimeout(timer);
    timer = setTimeout(check, DELAY_MS);
  });
  form.addEventListener("submit", () => { changed = false; });
  addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  document.getElementById("review")?.focus();

  async function check() {
    request.abort();
    request = new AbortController();
    try {
      const body = new URLSearchParams(new FormData(form));
      const response = await fetch(form.dataset.check, { method: "POST", body, signal: request.signal });
      if (!response.ok) throw new Error(response.statusText);
      show(await response.json());
    } catch (error) {
      if (error.name !== "AbortError") state.textContent = "Not checked: the service does not respond";
    }
  }

  function show(found) {
    for (const place of form.querySelectorAll("[data-problem]")) place.textContent = "";
    for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
    for (const { field, message } of found.problems) {
      const place = [field, field.slice(0, field.lastIndexOf("/")), ""].map(placeOf).find(Boolean);
      place.textContent += (place.textContent && "\n") + message;
      form.elements.namedItem(`f:${field}`)?.setAttribute?.("aria-invalid", "true");
    }
    changed = found.changed;
    const many = found.problems.length;
    state.textContent = many ? `${many} problem${many === 1 ? "" : "s"}` : found.changed ? "Valid, not saved" : "No changes";
  }

  function placeOf(name) {
    return form.querySelector(`[data-problem="${CSS.escape(name)}"]`);
  }
}
