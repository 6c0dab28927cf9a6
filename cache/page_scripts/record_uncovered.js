// Record which of the texts and frames that visible_text.js found covered are visible in a screenshot.
(numbers) => {
  const covered = globalThis.__assayCovered || [];
  const seen = (globalThis.__assayUncovered = globalThis.__assayUncovered || new Set());
  for (const number of numbers) if (covered[number]) seen.add(covered[number].node);
  return seen.size;
}
