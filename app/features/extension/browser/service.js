// Client for the extension API of the assay service: pairing, flagged URLs, submission of pages.

const DEADLINE_MS = 120000;

export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// Return the origin of a typed service address. Throws ServiceError unless it is an http or https URL.
export function serviceOrigin(typed) {
  const text = typed.trim();
  let found;
  try {
    found = new URL(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  } catch {
    throw new ServiceError("Invalid service address. Example: http://127.0.0.1:8000");
  }
  if (!["http:", "https:"].includes(found.protocol) || found.username || found.password) {
    throw new ServiceError("The service address must start with http or https and must not contain a password.");
  }
  const here = ["127.0.0.1", "localhost", "[::1]"].includes(found.hostname);
  if (found.protocol === "http:" && !here) {
    throw new ServiceError("Use https for a service on another machine: with http, others could read the submitted pages.");
  }
  return found.origin;
}

export const pairing = async () => (await chrome.storage.local.get("pairing")).pairing ?? null;

export async function pair(typed, code, name) {
  const service = serviceOrigin(typed);
  const headers = { "Content-Type": "application/json" };
  const given = await call(service, "POST", "pair", { body: JSON.stringify({ code, name }), headers });
  const kept = { service, token: given.token, by: given.by, name, expiresAt: given.expires_at };
  await chrome.storage.local.set({ pairing: kept });
  return kept;
}

export async function unpair() {
  const kept = await pairing();
  await chrome.storage.local.remove("pairing");
  await chrome.storage.session.clear();
  if (!kept) return;
  try {
    await call(kept.service, "DELETE", "pairing", { token: kept.token });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error; // the token has been removed from this browser in any case
  }
}

export const flagged = async () => (await callPaired("GET", "flagged")).items;

export async function submitPage(captured) {
  const form = new FormData();
  for (const [name, value] of Object.entries(captured.fields)) form.append(name, value);
  if (captured.html) form.append("html", new Blob([captured.html], { type: "text/html" }), "page.html");
  if (captured.image) form.append("image", captured.image, "page.jpg");
  return callPaired("POST", "captures", { body: form });
}

async function callPaired(method, path, options = {}) {
  const kept = await pairing();
  if (!kept) throw new ServiceError("This browser is not paired.", 401);
  return call(kept.service, method, path, { ...options, token: kept.token });
}

async function call(service, method, path, { body, headers = {}, token } = {}) {
  const sent = token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
  let answer;
  try {
    answer = await fetch(`${service}/v1/extension/${path}`, {
      method, body, headers: sent, credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
  } catch {
    throw new ServiceError(`${service} does not respond.`);
  }
  const read = await answer.json().catch(() => ({}));
  if (answer.ok) return read;
  const wrong = (read.errors ?? []).map((one) => `${one.path}: ${one.message}`).join("; ");
  throw new ServiceError([read.detail ?? `The service responded with status ${answer.status}.`, wrong].filter(Boolean).join(" "), answer.status);
}
