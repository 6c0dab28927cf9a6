// Measures of a page whose document is parsed. Otherwise wait for that and return true: other listeners may add text.
() => document.readyState !== "loading" ? /* include measure_page */() :
  new Promise((resolve) => document.addEventListener("DOMContentLoaded", () => resolve(true), { once: true }))
