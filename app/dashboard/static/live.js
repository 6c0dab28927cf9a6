// Live updates by server-sent events. Each event contains HTML that the server rendered and escaped.

export function follow(element) {
  const source = new EventSource(element.dataset.events);
  source.addEventListener("panel", (event) => show(element, event));
  for (const row of element.querySelectorAll("tr[id]")) {
    source.addEventListener(row.id, (event) => show(row, event));
  }
  source.addEventListener("end", () => {
    source.close();
    element.dataset.ended = "true";
  });
}

function show(element, event) {
  element.innerHTML = JSON.parse(event.data);
}
