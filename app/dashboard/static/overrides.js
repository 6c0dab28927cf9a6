// The forms by which people settle leaves: whose browser this is need not be typed again and again.

const KEY = "settled-by";

export function remembersName(root) {
  const fill = () => {
    for (const field of root.querySelectorAll("[data-name]")) field.value ||= localStorage.getItem(KEY) ?? "";
  };
  root.addEventListener("submit", (event) => {
    const name = event.target.querySelector("[data-name]")?.value;
    if (name) localStorage.setItem(KEY, name);
  });
  root.addEventListener("htmx:afterSwap", fill);
  fill();
}
