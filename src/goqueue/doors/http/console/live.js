/** What the node tells once a second to all who look: kept here, added up over nodes, with rates. A hidden page asks
 * nothing. */
import { get, Lost } from "./api.js";

const EVERY_MS = 1000;
export const TICKS = 60;
const TOPIC_SUMS = ["messages", "published", "size_bytes", "delivered", "delayed", "dead"];
const GROUP_SUMS = ["ready", "in_flight", "waiting", "lag", "served"];

export const live = {
  state: "starting", /* live, lost, paused */
  error: "", version: "", cluster: "", node: 0, readOnly: false, counting: false, tick: 0, missing: "",
  nodes: new Map(), topics: new Map(), groups: new Map(), checks: {}, sums: { in: [], out: [] },
};
const watchers = new Set();
let timer = 0, stopper = null;

/** `call` after each reading and each change of the connection. Returns how to end that. */
export function watch(call) {
  watchers.add(call);
  return () => watchers.delete(call);
}

const tell = () => { for (const call of [...watchers]) call(live); };

function keep(node, told) {
  const known = told.whole || !live.nodes.has(node) ? { topics: new Map(), groups: new Map() } : live.nodes.get(node);
  const touched = { topics: new Set(), groups: new Set() };
  for (const kind of ["topics", "groups"]) {
    if (told.whole) for (const name of live.nodes.get(node)?.[kind].keys() || []) touched[kind].add(name);
    for (const [name, row] of Object.entries(told[kind])) { known[kind].set(name, row); touched[kind].add(name); }
    for (const name of told["gone_" + kind]) { known[kind].delete(name); touched[kind].add(name); }
  }
  known.cursor = told.cursor;
  live.nodes.set(node, known);
  return touched;
}

function addUp(rows, fields) {
  const sum = Object.fromEntries(fields.map((each) => [each, 0]));
  for (const row of rows) for (const each of fields) sum[each] += row[each];
  return sum;
}

/** Rates are sparse: a tick without a change is a zero. */
function note(entry, before, now, ms) {
  if (!before || !ms) return;
  for (const [name, field] of entry.rated) {
    const gone = now[field] - before[field];
    if (gone <= 0) continue;
    const points = entry.rates[name].filter((each) => each.tick > live.tick - TICKS);
    points.push({ tick: live.tick, value: (gone * 1000) / ms });
    entry.rates[name] = points;
  }
}

function topic(name, ms) {
  const rows = [...live.nodes.values()].map((each) => each.topics.get(name)).filter(Boolean);
  if (!rows.length) { live.topics.delete(name); return; }
  const entry = live.topics.get(name) || { name, rated: [["in", "published"], ["out", "delivered"]], rates: { in: [], out: [] } };
  const sum = { ...addUp(rows, TOPIC_SUMS), partitions: rows[0].partitions, paused: rows[0].paused };
  note(entry, entry.row, sum, ms);
  entry.row = sum;
  live.topics.set(name, entry);
}

function group(name, ms) {
  const found = [...live.nodes.values()].map((each) => each.groups.get(name)).filter(Boolean);
  if (!found.length) { live.groups.delete(name); return; }
  const best = found.reduce((one, other) => (other.members > one.members ? other : one));
  const entry = live.groups.get(name) || { name, rated: [["out", "served"]], rates: { out: [] } };
  const byTopic = new Map();
  for (const each of found) for (const [at, row] of Object.entries(each.topics))
    byTopic.set(at, addUp([byTopic.get(at), row].filter(Boolean), GROUP_SUMS));
  const sum = addUp(byTopic.values(), GROUP_SUMS);
  note(entry, entry.row, sum, ms);
  Object.assign(entry, { type: best.type, state: best.state, members: best.members, paused: best.paused, topics: byTopic, row: sum });
  live.groups.set(name, entry);
}

export const current = (entry, name) => {
  const last = entry.rates[name].at(-1);
  return last && last.tick >= live.tick - 1 ? last.value : 0;
};

/** The last minute, one value for each tick. */
export function series(points) {
  const values = new Array(TICKS).fill(0);
  for (const each of points) {
    const at = TICKS - 1 - (live.tick - each.tick);
    if (at >= 0) values[at] = each.value;
  }
  return values;
}

/** Time is that between the node's readings: two answers may be of one reading, and then nothing is new. Nothing is
 * said of rates while other nodes answer than before. What a node has told that answers no more does not count: others
 * lead its partitions. */
function take(told) {
  const before = [...live.nodes.keys()], nodes = Object.entries(told.nodes), touched = { topics: new Set(), groups: new Set() };
  const same = live.counting && before.length === nodes.length && before.every((each) => each in told.nodes);
  const ms = same ? Math.max(...nodes.map(([node, each]) => each.cursor - live.nodes.get(node).cursor)) : 0;
  if (same && !ms) return;
  for (const node of before) if (!(node in told.nodes)) {
    for (const kind of ["topics", "groups"]) for (const name of live.nodes.get(node)[kind].keys()) touched[kind].add(name);
    live.nodes.delete(node);
  }
  live.tick += 1;
  live.counting = true;
  Object.assign(live, { version: told.version, cluster: told.cluster_id, node: told.node_id,
    readOnly: told.console === "read-only", missing: told.missing_nodes || "" });
  live.checks = {};
  for (const [node, each] of nodes) {
    const some = keep(node, each);
    for (const kind of ["topics", "groups"]) for (const name of some[kind]) touched[kind].add(name);
    for (const [name, check] of Object.entries(each.checks || {})) live.checks[node + " " + name] = check;
  }
  for (const name of touched.topics) topic(name, ms);
  for (const name of touched.groups) group(name, ms);
  for (const way of ["in", "out"]) {
    let sum = 0;
    for (const entry of live.topics.values()) sum += current(entry, way);
    live.sums[way] = [...live.sums[way].slice(1 - TICKS), { tick: live.tick, value: sum }];
  }
}

async function look() {
  const begun = performance.now(), mine = (stopper = new AbortController());
  try {
    const since = [...live.nodes].map(([node, each]) => node + ":" + each.cursor).join(",");
    const told = await get("/console/reading", { since }, mine.signal);
    if (mine.signal.aborted) return;
    take(told);
    live.state = "live";
    live.error = "";
  } catch (error) {
    if (mine.signal.aborted) return;
    live.state = error instanceof Lost ? "lost" : "refused";
    live.error = error.message;
    live.counting = false;
    if (error.status === 401) return;
  }
  timer = setTimeout(look, Math.max(100, EVERY_MS - (performance.now() - begun)));
  tell();
}

export function start() {
  stop();
  if (!document.hidden) look();
}

export function stop() {
  clearTimeout(timer);
  stopper?.abort();
  live.counting = false;
}

document.addEventListener("visibilitychange", () => {
  if (live.state === "starting") return;
  if (document.hidden) { stop(); live.state = "paused"; tell(); } else start();
});
