// Override forms: the name of the person is stored in the browser and filled in next time.

const KEY = "override-by";

export function rememberName(root) {
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
