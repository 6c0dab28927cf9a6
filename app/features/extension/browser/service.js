// The assay service as this browser may use it: pairing, what needs work, handing in. Its token opens nothing else.

const DEADLINE_MS = 120000;

export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// The origin of a service as somebody typed it; what is no http(s) address is refused.
export function serviceOrigin(typed) {
  const text = typed.trim();
  let found;
  try {
    found = new URL(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  } catch {
    throw new ServiceError("This is no address. It looks like http://127.0.0.1:8000.");
  }
  if (!["http:", "https:"].includes(found.protocol) || found.username || found.password) {
    throw new ServiceError("The service has an http or https address without a password in it.");
  }
  const here = ["127.0.0.1", "localhost", "[::1]"].includes(found.hostname);
  if (found.protocol === "http:" && !here) {
    throw new ServiceError("Beyond this machine only https: pages that you may see alone would travel readable for all.");
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
    if (!(error instanceof ServiceError)) throw error; // this browser forgot its token in any case
  }
}

export const flagged = async () => (await ours("GET", "flagged")).items;

export async function handIn(seen) {
  const form = new FormData();
  for (const [name, value] of Object.entries(seen.fields)) form.append(name, value);
  if (seen.html) form.append("html", new Blob([seen.html], { type: "text/html" }), "page.html");
  if (seen.image) form.append("image", seen.image, "page.jpg");
  return ours("POST", "captures", { body: form });
}

async function ours(method, path, options = {}) {
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
    throw new ServiceError(`${service} does not answer.`);
  }
  const read = await answer.json().catch(() => ({}));
  if (answer.ok) return read;
  const wrong = (read.errors ?? []).map((one) => `${one.path}: ${one.message}`).join("; ");
  throw new ServiceError([read.detail ?? `It answered ${answer.status}.`, wrong].filter(Boolean).join(" "), answer.status);
}
