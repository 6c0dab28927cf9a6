// Single-letter keys of a page. They can conflict with speech input and switch devices, so they can be disabled in the
// list of keys, which "?" opens.

export function listenForKeys(keys, { repeatable = "jknN", usesKey = () => false } = {}) {
  const help = document.getElementById("keys-help");
  const enabled = document.getElementById("keys-on");
  const all = {
    ...keys,
    "?": () => {
      if (!help) return;
      help.open = !help.open;
      if (help.open) help.scrollIntoView({ block: "nearest" });
    },
  };
  enabled.checked = localStorage.getItem("single-keys") !== "off";
  enabled.addEventListener("change", () => localStorage.setItem("single-keys", enabled.checked ? "on" : "off"));
  document.addEventListener("keydown", (event) => {
    if (!enabled.checked || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, select, textarea, [contenteditable]") || usesKey(event)) return;
    if (!Object.hasOwn(all, event.key) || (event.repeat && !repeatable.includes(event.key))) return;
    event.preventDefault();
    all[event.key]();
  });
}
