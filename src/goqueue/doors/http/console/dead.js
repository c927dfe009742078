/** Dead letters of all topics: why they died, what they said, and the way back to work. */
import { ago, button, card, chip, el, empty, grid, head, keyed, link, linked, number, plural, say, single } from "./dom.js";
import { get, path } from "./api.js";
import { live } from "./live.js";
import { act } from "./actions.js";
import { facts, value } from "./content.js";

const LIMIT = 100;

export function dead([chosen]) {
  const stopper = new AbortController();
  let timer = 0, letters = [], count = -1, looked = "", picked = new Set();
  const source = chosen?.endsWith(".dlq") ? chosen.slice(0, -4) : chosen;
  const list = el("ul", { className: "findings" }), none = empty("There are no dead letters.");
  const wrong = el("p", { className: "wrong", role: "alert" }), detail = el("div");
  const reasons = el("p", { className: "reasons" });
  const rows = grid("Dead letters", (each) => each.partition + "/" + each.offset, [
    ["", (each, known) => known || el("input", { type: "checkbox", ariaLabel: "Choose " + each.partition + "/" + each.offset, onchange: (event) => choose(each, event.target.checked) })],
    ["Message", linked((each) => each.original_topic + "/" + each.original_partition + "/" + each.original_offset, (each) => ["topics", each.original_topic, each.original_partition, each.original_offset])],
    ["Died", (each) => (each.died_at ? ago(each.died_at) : "")], ["Because", (each) => each.reason + (each.error ? ": " + each.error : "")], ["Group", (each) => each.group],
    ["#Attempts", (each) => each.attempts], ["#Redriven", (each) => each.redrives], ["", (each, known) => known || button("Look", () => look(each))]]);
  const some = button("Redrive", () => act("redrive", { topic: source, ...(picked.size && { places: [...picked] }) }, () => { load(); watch(); }), "primary action");
  const under = el("p", { className: "dim", role: "status" }), stop = button("Stop the redrive", () => act("stop-redrive", { topic: source }, watch), "action danger");
  stop.hidden = true;
  const whole = card("", el("div", { className: "tools" }, reasons, some, stop), under, wrong, rows.node, detail);
  whole.hidden = !chosen;
  const node = el("div", {}, head(chosen ? "Dead letters: " + chosen : "Dead letters"), chosen ? el("p", { className: "crumbs" }, link("All dead letters", "dead")) : card("", list, none), whole);

  function choose(each, is) {
    picked[is ? "add" : "delete"](each.partition + "/" + each.offset);
    label();
  }

  function label() {
    say(some, picked.size ? "Redrive " + plural(picked.size, "chosen one") : "Redrive all " + number(count));
  }

  function look(each) {
    looked = each.partition + "/" + each.offset;
    detail.replaceChildren(el("section", { className: "card why dead" }, el("header", {}, el("h2", { textContent: each.partition + "/" + each.offset }),
      el("span", { className: "actions action" }, button("Discard", () => act("discard", { topic: source, partition: each.partition, offset: each.offset }, load), "danger"))),
    facts([["Key", each.key], ["Error", each.error], ["First delivered", each.first_delivered_at], ["Died", each.died_at], ...Object.entries(each.headers).map(([key, one]) => ["Header " + key, one ?? ""])]), value(each)));
    detail.scrollIntoView({ block: "nearest" });
  }

  /** A redrive that goes on. */
  async function watch() {
    clearTimeout(timer);
    if (document.hidden) { timer = setTimeout(watch, 1000); return; }
    try {
      const told = await get(path`/topics/${source}/dlq/redrive`, {}, stopper.signal);
      stop.hidden = !["running", "stopping"].includes(told.state);
      say(under, stop.hidden ? "" : told.state + ": " + plural(told.redriven, "message") + " sent back so far.");
      if (!stop.hidden) timer = setTimeout(watch, 1000);
    } catch { stop.hidden = true; }
  }

  const load = single(async () => {
    try {
      letters = (await get(path`/topics/${source}/dlq`, { limit: LIMIT }, stopper.signal)).messages;
      const by = new Map();
      for (const each of letters) by.set(each.reason, (by.get(each.reason) || 0) + 1);
      keyed(reasons, by, ([reason]) => reason, ([reason]) => chip(reason, "dead"), (each, [reason, one]) => say(each, reason + ": " + one + (letters.length === LIMIT ? "+" : "")));
      const there = new Set(letters.map((each) => each.partition + "/" + each.offset));
      picked = new Set([...picked].filter((each) => there.has(each)));
      rows.draw(letters);
      if (!there.has(looked)) detail.replaceChildren();
      label();
      some.hidden = !letters.length;
      say(wrong, letters.length ? "" : "Nothing is left to be dealt with.");
    } catch (error) { if (!stopper.signal.aborted) say(wrong, error.message); }
  });

  function update() {
    const all = [...live.topics.values()].filter((each) => each.row.dead);
    none.hidden = all.length > 0;
    keyed(list, all, (each) => each.name, (each) => el("li", {}, el("a", { href: "#/dead/" + encodeURIComponent(each.name) }, chip("", "dead"), el("span"))),
      (row, each) => say(row.querySelector("span:last-child"), each.name + ": " + plural(each.row.dead, "dead letter")));
    const now = chosen ? live.topics.get(chosen)?.row.dead ?? 0 : 0;
    if (chosen && now !== count) { if (count < 0) watch(); count = now; load(); }
  }
  return { node, update, title: "Dead letters", close: () => { stopper.abort(); clearTimeout(timer); } };
}
