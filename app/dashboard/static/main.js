// What every page runs. Pages work without it, too: links are links and forms are forms.
import { follow } from "./live.js";
import { workshop } from "./pages.js";
import { takeDrops } from "./repair.js";
import { remembersName } from "./settle.js";
import { walksSteps } from "./steps.js";
import { bench } from "./tree.js";

for (const element of document.querySelectorAll("[data-events]")) follow(element);
const tree = document.getElementById("tree");
if (tree) bench(tree);
const panels = document.getElementById("panels");
if (panels) workshop(panels);
else for (const form of document.querySelectorAll("[data-drop]")) takeDrops(form, () => form.requestSubmit());
remembersName(document.getElementById("detail") ?? document);
for (const links of document.querySelectorAll(".neighbours")) walksSteps(links);
