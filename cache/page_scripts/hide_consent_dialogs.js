// Hide the consent dialogs that visible_text.js found, and the frames with the given numbers.
(frames) => {
  const framed = frames.map((number) => (globalThis.__assayFrames || [])[number]);
  for (const el of [...(globalThis.__assayDialogs || []), ...framed]) if (el) el.style.setProperty("display", "none", "important");
}
