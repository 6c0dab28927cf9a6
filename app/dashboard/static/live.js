// Live pages. A stream of the server tells that jobs have changed; the page is then fetched again and its parts that
// have ``data-live`` are replaced. Filters use the same function. Other streams contain HTML that the server rendered.

const MIN_PAUSE_MS = 1000;
const RECONNECT_MS = 30_000;

export function follow(element) {
  const source = new EventSource(element.dataset.events);
  source.addEventListener("panel", (event) => (element.innerHTML = JSON.parse(event.data)));
  source.addEventListener("end", () => {
    source.close();
    element.dataset.ended = "true";
  });
}

let requests = 0;

// Replace the live parts of this page by those of the page at ``address``. Only the newest request counts.
export async function refresh(address = location.href) {
  const number = ++requests;
  const reply = await fetch(address, { headers: { Accept: "text/html" } });
  if (reply.redirected && new URL(reply.url).pathname === "/sign-in") return location.assign(reply.url);
  if (!reply.ok) return;
  const html = await reply.text();
  if (number !== requests) return;
  // Another page is shown now, which may have styles of its own.
  if (!/<[^>]+ data-live/.test(html) && document.querySelector('[data-live="jobs"]')) return location.reload();
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (!next && part.dataset.live === "jobs") return location.reload(); // another page is shown now
    if (next && next.innerHTML !== part.innerHTML) replace(part, next);
  }
}

function replace(part, next) {
  const open = [...part.querySelectorAll("details")].map((details) => details.open);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const same = focused?.id ? `#${CSS.escape(focused.id)}` : focused?.getAttribute("href") ? `[href="${CSS.escape(focused.getAttribute("href"))}"]` : null;
  part.replaceChildren(...next.childNodes);
  if (open.length) part.querySelectorAll("details").forEach((details, n) => (details.open = open[n] ?? details.open));
  if (same) part.querySelector(same)?.focus({ preventScroll: true });
}

// Refresh after changes of jobs: at once, but at most once a second. A hidden page closes its stream, because browsers
// open at most six connections to a server; the stream reports a change when it opens again.
export function followChanges() {
  let source = null;
  let wanted = false;
  let busy = false;
  async function update() {
    wanted = true;
    if (busy) return;
    busy = true;
    while (wanted && !document.hidden) {
      wanted = false;
      const start = performance.now();
      await refresh().catch(() => {}); // the stream reconnects when the service responds again
      await new Promise((done) => setTimeout(done, Math.max(MIN_PAUSE_MS, 4 * (performance.now() - start))));
    }
    busy = false;
  }
  function connect() {
    source?.close();
    if (document.hidden) return;
    source = new EventSource("/events");
    source.addEventListener("changed", update);
    source.addEventListener("error", (event) => {
      if (event.target === source && source.readyState === EventSource.CLOSED) setTimeout(connect, RECONNECT_MS);
    });
  }
  document.addEventListener("visibilitychange", connect);
  connect();
}

// Filters apply when they change. Without scripts, their button sends them.
export function applyWhenChanged(form) {
  form.classList.add("auto");
  const apply = () => {
    const fields = [...new FormData(form)].filter(([, value]) => value);
    const address = `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
    history.replaceState(history.state, "", address);
    form.setAttribute("aria-busy", "true");
    refresh(address).finally(() => form.removeAttribute("aria-busy"));
  };
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
}

const UNITS = [["day", 86_400], ["hour", 3600], ["min", 60]];

// Times like "5 min ago" stay correct while the page is open. The server renders them in the same way.
export function updateTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.now() - new Date(time.dateTime)) / 1000;
    if (seconds > 7 * 86_400) continue;
    const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? [];
    const number = Math.floor(seconds / size);
    time.textContent = unit ? `${number} ${unit}${number > 1 && unit !== "min" ? "s" : ""} ago` : "just now";
  }
}
