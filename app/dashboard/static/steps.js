// Steps of a suite run: the keys j and k open the next and the previous step.
import { listenForKeys } from "./keys.js";

export function stepKeys(links) {
  const follow = (rel) => () => links.querySelector(`[rel="${rel}"]`)?.click();
  listenForKeys({ j: follow("next"), k: follow("prev") });
}
