/** Requests to the node that this page came from, and to no other; each can be told as curl and as a command. */

export const BASE = location.pathname.replace(/\/console\/.*$/, "");
const TIMEOUT_MS = 20000;
let csrf = "";

export class Refused extends Error {
  constructor(status, code, words) { super(words); this.status = status; this.code = code; }
}
/** The node did not answer. */
export class Lost extends Error {}

export const path = (strings, ...names) =>
  strings.reduce((whole, part, at) => whole + encodeURIComponent(names[at - 1]) + part);

export function address(at, query) {
  const known = Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return at + (known.length ? "?" + new URLSearchParams(known) : "");
}

/** @returns {Promise<any>} the body of the answer. Throws Refused or Lost. */
export async function ask(method, at, { query, body, signal } = {}) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET" && csrf) headers["x-goqueue-csrf"] = csrf;
  const stop = signal ? AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) : AbortSignal.timeout(TIMEOUT_MS);
  let reply, told;
  try {
    reply = await fetch(BASE + address(at, query), { method, headers, signal: stop,
      body: body === undefined ? undefined : JSON.stringify(body) });
    told = await reply.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Lost("the node does not answer");
  }
  if (!reply.ok) {
    if (reply.status === 401 && at !== "/session") dispatchEvent(new Event("signed-out"));
    throw new Refused(reply.status, told.code || "", told.error || reply.statusText);
  }
  const missing = reply.headers.get("gq-missing-nodes");
  if (missing && told && typeof told === "object") told.missing_nodes = missing;
  return told;
}

export const get = (at, query, signal) => ask("GET", at, { query, signal });

export async function who() {
  const told = await get("/session");
  csrf = told.csrf_token || "";
  return told;
}

export async function signIn(user, password) {
  const told = await ask("POST", "/session", { body: { user, password } });
  csrf = told.csrf_token || "";
  return told;
}

export async function signOut() {
  await ask("DELETE", "/session");
  csrf = "";
}

/** What is to be asked, as an action says it. */
export const [post, put, patch, remove] = ["POST", "PUT", "PATCH", "DELETE"].map((method) => (at, body) => ({ method, at, body }));

const quoted = (text) => (/^[\w./:=@%,+-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'");

/** @param {{method: string, at: string, query?: object, body?: object}} request */
export function curl({ method, at, query, body }) {
  const words = ["curl", quoted(location.origin + BASE + address(at, query))];
  if (method !== (body ? "POST" : "GET")) words.splice(1, 0, "-X", method);
  if (body) words.push("--json", quoted(JSON.stringify(body)));
  return words.join(" ");
}

export const command = (...words) => "goqueue " + words.filter((each) => each !== "").map(String).map(quoted).join(" ");
