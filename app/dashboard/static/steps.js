// Steps of a suite run: the keys j and k open the next and the previous step.

export function stepKeys(links) {
  const keysOn = document.getElementById("keys-on");
  keysOn.checked = localStorage.getItem("single-keys") !== "off";
  keysOn.addEventListener("change", () => localStorage.setItem("single-keys", keysOn.checked ? "on" : "off"));
  const follow = { j: '[rel="next"]', k: '[rel="prev"]' };
  document.addEventListener("keydown", (event) => {
    if (!keysOn.checked || event.target.closest("input, select, textarea") || event.metaKey || event.ctrlKey || event.altKey) return;
    if (follow[event.key]) links.querySelector(follow[event.key])?.click();
  });
}
