/** Is it healthy, in one sentence; what comes in and goes out; and what needs attention, each with a link. */
import { bytes, card, chip, el, empty, grid, hash, head, keyed, linked, number, plural, rate, say, short } from "./dom.js";
import { spark } from "./charts.js";
import { current, live } from "./live.js";

const FINDINGS_MAX = 20;
/** By group: since which tick nobody has taken anything although there is something. */
const idle = new Map();
const IDLE_TICKS = 5;

export function findings() {
  const found = [];
  for (const [name, check] of Object.entries(live.checks))
    found.push({ id: "check " + name, kind: check.status === "fail" ? "dead" : "leased", words: check.message, to: ["cluster"] });
  if (live.missing) found.push({ id: "missing", kind: "dead", words: "No answer from node " + live.missing, to: ["cluster"] });
  for (const entry of live.topics.values())
    if (entry.row.dead) found.push({ id: "dead " + entry.name, kind: "dead", to: ["dead", entry.name],
      words: plural(entry.row.dead, "dead letter") + " in " + entry.name });
  for (const entry of live.topics.values())
    if (entry.row.paused) found.push({ id: "paused topic " + entry.name, kind: "leased", to: ["topics", entry.name], words: entry.name + " is paused" });
  for (const entry of live.groups.values()) {
    if (entry.paused) { found.push({ id: "paused " + entry.name, kind: "leased", to: ["groups", entry.name], words: entry.name + " is paused" }); continue; }
    if (!entry.row.ready || entry.row.in_flight || current(entry, "out")) idle.delete(entry.name);
    else if (!idle.has(entry.name)) idle.set(entry.name, live.tick);
    if (idle.has(entry.name) && live.tick - idle.get(entry.name) >= IDLE_TICKS)
      found.push({ id: "idle " + entry.name, kind: "leased", to: ["groups", entry.name],
        words: entry.name + " has " + plural(entry.row.ready, "message") + " ready, and nobody takes them" });
  }
  return found;
}

function tile(name, picture) {
  const value = el("strong"), more = el("span", { className: "dim" });
  const node = el("div", { className: "tile" }, el("span", { className: "name", textContent: name }), value, more, picture);
  return { node, say: (words, rest) => { say(value, words); say(more, rest || ""); } };
}

export function home() {
  const sparks = { in: spark("published in the last minute", 240, 44), out: spark("delivered in the last minute", 240, 44) };
  const tiles = { in: tile("Published", sparks.in), out: tile("Delivered", sparks.out), waits: tile("Waiting"), kept: tile("Kept") };
  const sentence = el("p", { className: "sentence", role: "status" });
  const list = el("ul", { className: "findings" });
  const none = empty("Nothing needs attention.");
  const busy = grid("Busiest topics", (each) => each.name, [["Topic", linked((each) => each.name, (each) => ["topics", each.name])],
    ["#In", (each) => rate(current(each, "in"))], ["#Out", (each) => rate(current(each, "out"))]]);
  const node = el("div", {}, head("Home"), sentence,
    el("div", { className: "tiles" }, Object.values(tiles).map((each) => each.node)),
    el("div", { className: "two" }, card("Needs attention", list, none),
      card("Busiest topics", busy.node)));

  function update() {
    const topics = [...live.topics.values()], groups = [...live.groups.values()];
    const some = findings();
    const wrong = some.filter((each) => each.kind === "dead").length;
    say(sentence, wrong ? plural(wrong, "thing") + (wrong === 1 ? " needs" : " need") + " your attention."
      : some.length ? "Everything is in service; " + plural(some.length, "remark") + "." : "Everything is in service, and nothing needs your attention.");
    sentence.className = "sentence " + (wrong ? "dead" : some.length ? "leased" : "settled");
    for (const way of ["in", "out"]) {
      tiles[way].say(rate(live.sums[way].at(-1)?.value || 0), "");
      sparks[way].draw(live.sums[way]);
    }
    const add = (field) => groups.reduce((sum, each) => sum + each.row[field], 0);
    tiles.waits.say(short(add("ready")), number(add("in_flight")) + " in flight, " + number(add("waiting")) + " wait for a retry, " +
      number(topics.reduce((sum, each) => sum + each.row.delayed, 0)) + " delayed");
    tiles.kept.say(short(topics.reduce((sum, each) => sum + each.row.messages, 0)),
      "messages in " + plural(topics.length, "topic") + ", " + bytes(topics.reduce((sum, each) => sum + each.row.size_bytes, 0)));
    none.hidden = some.length > 0;
    keyed(list, some.slice(0, FINDINGS_MAX), (each) => each.id,
      (each) => el("li", {}, el("a", { href: hash(...each.to) }, chip("", each.kind), el("span"))),
      (row, each) => say(row.querySelector("span:last-child"), each.words));
    const top = topics.sort((one, other) => current(other, "in") + current(other, "out") - current(one, "in") - current(one, "out")
      || other.row.messages - one.row.messages).slice(0, 8);
    busy.draw(top);
  }
  return { node, update, title: "Home" };
}
