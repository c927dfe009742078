/** All topics: what they hold and how fast it moves. Thousands are filtered and sorted here, and some are drawn. */
import { button, bytes, chip, el, empty, grid, head, link, number, plural, rate, say, short } from "./dom.js";
import { spark } from "./charts.js";
import { current, live } from "./live.js";
import { act } from "./actions.js";

const PAGE = 200;
const ORDERS = { name: (one, other) => (one.name < other.name ? -1 : 1), rate: (one, other) => current(other, "in") - current(one, "in"),
  messages: (one, other) => other.row.messages - one.row.messages, size: (one, other) => other.row.size_bytes - one.row.size_bytes };

/** What groups have to do with each topic. */
function sums() {
  const found = new Map();
  for (const group of live.groups.values()) for (const [name, row] of group.topics) {
    const sum = found.get(name) || { ready: 0, in_flight: 0 };
    found.set(name, { ready: sum.ready + row.ready, in_flight: sum.in_flight + row.in_flight });
  }
  return found;
}

function named(each, known) {
  const cell = known || el("span", {}, link(each.name, "topics", each.name), chip("dead letters", "dead"), chip("paused", "leased"));
  cell.children[1].hidden = !each.row.dead;
  cell.children[2].hidden = !each.row.paused;
  return cell;
}

function rates(each, known) {
  const cell = known || el("span", { className: "rate" }, spark("published to " + each.name, 90, 22), el("span"));
  cell.firstChild.draw(each.rates.in);
  say(cell.lastChild, rate(current(each, "in")));
  return cell;
}

export function topics() {
  let shown = PAGE, added = new Map();
  const filter = el("input", { type: "search", placeholder: "Filter by name", ariaLabel: "Filter by name", oninput: () => update() });
  const order = el("select", { ariaLabel: "Order", onchange: () => update() },
    Object.keys(ORDERS).map((value) => el("option", { value, textContent: "by " + value })));
  const count = el("span", { className: "dim", role: "status" });
  const list = grid("Topics", (each) => each.name, [
    ["Topic", named],
    ["#Partitions", (each) => number(each.row.partitions)], ["#Messages", (each) => short(each.row.messages)],
    ["#Size", (each) => bytes(each.row.size_bytes)], ["Published", rates],
    ["#Ready", (each) => short(added.get(each.name)?.ready || 0)], ["#In flight", (each) => short(added.get(each.name)?.in_flight || 0)],
    ["#Delayed", (each) => short(each.row.delayed)]]);
  const more = button("Show more", () => { shown += PAGE; update(); });
  const none = empty("There are no topics yet. Publishing to one makes it.");
  const node = el("div", {}, head("Topics", count, button("New topic", () => act("create-topic"), "primary action")),
    el("div", { className: "tools" }, filter, order), list.node, none, more);

  function update() {
    const words = filter.value.toLowerCase();
    const some = [...live.topics.values()].filter((each) => each.name.toLowerCase().includes(words)).sort(ORDERS[order.value]);
    say(count, plural(some.length, "topic"));
    more.hidden = some.length <= shown;
    none.hidden = live.topics.size > 0;
    added = sums();
    list.draw(some.slice(0, shown));
  }
  return { node, update, title: "Topics" };
}
