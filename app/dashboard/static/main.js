// Entry point of all pages. Pages also work without scripts, because they use links and forms.
import { applyWhenChanged, follow, followChanges, updateTimes } from "./live.js";
import { startPanels } from "./pages.js";
import { acceptDrops } from "./repair.js";
import { startPalette } from "./palette.js";
import { rememberName } from "./overrides.js";
import { stepKeys } from "./steps.js";
import { startTree } from "./tree.js";

for (const element of document.querySelectorAll("[data-events]")) follow(element);
if (document.querySelector("[data-live=jobs]")) followChanges();
for (const form of document.querySelectorAll("form[data-auto]")) applyWhenChanged(form);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-copy]");
  if (!link || !navigator.clipboard) return; // without it, the link opens the page whose address can be copied
  event.preventDefault();
  navigator.clipboard.writeText(link.href).then(() => { link.textContent = "Copied"; });
});
setInterval(updateTimes, 30_000);
startPalette(document.getElementById("search-link"));
const tree = document.getElementById("tree");
if (tree) startTree(tree);
const panels = document.getElementById("panels");
if (panels) startPanels(panels);
else for (const form of document.querySelectorAll("[data-drop]")) acceptDrops(form, () => form.requestSubmit());
rememberName(document.getElementById("detail") ?? document);
for (const links of document.querySelectorAll(".neighbours")) stepKeys(links);
