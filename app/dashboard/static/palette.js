// Command palette: Ctrl-K, Cmd-K or "/" opens it. It shows the results of the search page as a list of options.

const PAUSE_MS = 120;

export function startPalette(link) {
  const dialog = document.getElementById("palette");
  const input = dialog.querySelector("input");
  const list = dialog.querySelector("ul");
  const status = dialog.querySelector('[role="status"]');
  let timer = 0;
  let request = 0;

  const options = () => [...list.children];
  const active = () => list.querySelector('[aria-selected="true"]');

  function activate(option) {
    active()?.setAttribute("aria-selected", "false");
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  }

  async function search() {
    const number = ++request;
    const reply = await fetch(`/search?${new URLSearchParams({ q: input.value })}`, { headers: { Accept: "text/html" } }).catch(() => null);
    if (number !== request || !reply) return;
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    if (number !== request) return;
    const found = [...page.querySelectorAll("#found a")].map((anchor, n) => {
      const option = document.createElement("li");
      option.id = `option-${n}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.dataset.path = anchor.getAttribute("href");
      option.append(...anchor.childNodes);
      return option;
    });
    list.replaceChildren(...found);
    activate(found[0]);
    status.textContent = reply.ok ? (found.length ? `${found.length} found` : "Nothing matches") : "The search failed";
  }

  function open() {
    if (dialog.open) return;
    dialog.showModal();
    input.select();
    search();
  }

  function go(option) {
    if (option) location.assign(option.dataset.path);
  }

  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    const all = options();
    const at = all.indexOf(active());
    if (event.key === "ArrowDown") activate(all[(at + 1) % all.length]);
    else if (event.key === "ArrowUp") activate(all[(at - 1 + all.length) % all.length]);
    else if (event.key === "Enter") go(active());
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => go(event.target.closest('[role="option"]')));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.addEventListener("keydown", (event) => {
    const letter = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (letter && (event.target.closest("input, select, textarea") || localStorage.getItem("single-keys") === "off")) return;
    if (!letter && !((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k")) return;
    event.preventDefault();
    open();
  });
}
