/** One group: what waits in each lane, who holds what until when, who its members are, and how far it is behind. */
import { button, card, chip, el, empty, grid, head, linked, number, say, short, single, span, timed } from "./dom.js";
import { get, path } from "./api.js";
import { live } from "./live.js";
import { act } from "./actions.js";
import { gone } from "./groups.js";

const EVERY = 2, FORKS_EVERY = 10;
const LANES = ["critical", "high", "normal", "low", "background"];

export function group([name]) {
  const stopper = new AbortController();
  let tick = 0, names = new Map();
  const kind = chip(""), values = {};
  const tile = (title, field) => el("div", { className: "tile" }, el("span", { className: "name", textContent: title }), (values[field] = el("strong")));
  const lanes = grid("Partitions", (each) => each.topic + "/" + each.partition, [["Partition", linked((each) => each.topic + "/" + each.partition, (each) => ["topics", each.topic])],
    ...LANES.map((lane) => ["#" + lane, (each) => (each.queue ? short(each.queue.ready[lane] || 0) : "–")]),
    ["#In flight", (each) => (each.queue ? short(Object.values(each.queue.leased).reduce((sum, one) => sum + one, 0)) : "–")], ["#Lag", (each) => number(each.lag)],
    ["Oldest", (each) => (each.queue?.oldest_age_ms ? span(each.queue.oldest_age_ms) : "–")], ["Owner", (each) => each.owner?.client_id]]);
  const leases = grid("Leases", (each) => [each.topic, each.partition, each.first_offset, each.leased_at].join("/"), [
    ["Messages", linked((each) => each.topic + "/" + each.partition + "/" + each.first_offset + (each.messages > 1 ? "–" + each.last_offset : ""), (each) => ["topics", each.topic, each.partition, each.first_offset])],
    ["Held by", (each) => names.get(each.consumer) || each.consumer], ["#Attempt", (each) => each.delivery_count], ["Until", timed((each) => each.lease_until)],
    ["#Left", (each) => { const left = Date.parse(each.lease_until) - Date.now(); return left > 0 ? span(left) : "any moment"; }],
    ["", (each, known) => known || el("span", { className: "actions action" }, button("Extend", () => act("extend", held(each), load)), button("Release", () => act("release", held(each), load)))]]);
  const held = (each) => ({ group: name, topic: each.topic, partition: each.partition, offset: each.first_offset });
  const members = grid("Members", (each) => each.member_id, [["Member", (each) => each.client_id || each.member_id], ["Host", (each) => each.host],
    ["Partitions", (each) => each.partitions.map((one) => one.topic + "/" + one.partition).join(", ")]]);
  const forks = grid("Forks", (each) => each.fork, [["Fork", linked((each) => each.fork, (each) => ["groups", each.fork])],
    ["#Settled by the group alone", (each) => number(each.only_group)], ["#Settled by the fork alone", (each) => number(each.only_fork)],
    ["", (each, known) => known || el("span", { className: "actions action" }, button("Compare", () => act("compare", { group: name, other: each.fork })),
      button("Promote", () => act("promote", { group: name, fork: each.fork }, again)), button("Delete", () => act("delete-fork", { group: name, fork: each.fork }, again), "danger"))]]);
  const forked = card("Forks", forks.node);
  forked.hidden = true;
  const pause = button("Pause", () => act((live.groups.get(name)?.paused ? "resume" : "pause") + "-group", { name }), "action");
  const idle = empty("Nobody holds a message."), alone = empty("It has no members: consumers of a queue need not be.");
  const node = el("div", {}, head(name, kind, el("span", { className: "actions" }, pause,
    [["Seek", "seek"], ["Replay", "replay"], ["Fork", "fork"], ["Compare", "compare"], ["Promote", "promote"]].map(([words, action]) =>
      button(words, () => act(action, { group: name, topics: [...(live.groups.get(name)?.topics.keys() || [])] }, again), "action")))),
    el("div", { className: "tiles" }, tile("Ready", "ready"), tile("In flight", "in_flight"), tile("Wait for a retry", "waiting"), tile("Gone in", "gone")),
    card("What waits, lane by lane", lanes.node), card("Who holds what", leases.node, idle), forked, card("Members", members.node, alone));

  const load = single(async () => {
    try {
      const [lag, held, about] = await Promise.all([get(path`/groups/${name}/lag`, {}, stopper.signal), get("/leases", { group: name }, stopper.signal),
        get(path`/groups/${name}`, {}, stopper.signal)]);
      names = new Map(about.members.map((each) => [each.member_id, each.client_id]));
      lanes.draw(lag.partitions);
      leases.draw(held.leases);
      members.draw(about.members);
      idle.hidden = held.leases.length > 0;
      alone.hidden = about.members.length > 0;
    } catch (error) { if (!stopper.signal.aborted && error.status) say(kind, error.message); }
  });
  const lookAtForks = single(async () => {
    const told = await get(path`/groups/${name}/forks`, {}, stopper.signal).catch(() => null);
    if (told) { forks.draw(told.forks); forked.hidden = !told.forks.length; }
  });
  const again = () => { load(); lookAtForks(); };
  function update() {
    const entry = live.groups.get(name);
    if (!entry) return;
    say(kind, (entry.type === "share" ? "queue" : "stream") + ", " + entry.state + (entry.paused ? ", paused" : ""));
    kind.className = "chip" + (entry.paused ? " leased" : "");
    say(pause, entry.paused ? "Resume" : "Pause");
    for (const field of ["ready", "in_flight", "waiting"]) say(values[field], short(entry.row[field]));
    say(values.gone, gone(entry));
    if (tick % EVERY === 0) load();
    if (tick++ % FORKS_EVERY === 0) lookAtForks();
  }
  return { node, update, title: name, close: () => stopper.abort() };
}
