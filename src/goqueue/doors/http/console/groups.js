/** All groups: what waits for them, what they hold, and how fast they go. */
import { button, chip, el, empty, grid, head, link, plural, rate, say, short, span } from "./dom.js";
import { current, live } from "./live.js";

const PAGE = 500;

/** How long until nothing waits, at this rate. */
export function gone(group) {
  const speed = current(group, "out");
  return group.row.ready === 0 ? "–" : speed ? span((group.row.ready / speed) * 1000) : "not at this rate";
}

export function groups() {
  let shown = PAGE;
  const filter = el("input", { type: "search", placeholder: "Filter by name", ariaLabel: "Filter by name", oninput: () => update() });
  const count = el("span", { className: "dim", role: "status" });
  const none = empty("There are no groups yet. Receiving from a topic on behalf of one makes it.");
  const list = grid("Groups", (each) => each.name, [
    ["Group", (each, known) => known || el("span", {}, link(each.name, "groups", each.name), chip(each.type === "share" ? "queue" : "stream"))],
    ["State", (each) => each.state + (each.paused ? ", paused" : "") + (each.members ? ", " + plural(each.members, "member") : "")], ["#Ready", (each) => short(each.row.ready)],
    ["#In flight", (each) => short(each.row.in_flight)], ["#Waiting", (each) => short(each.row.waiting)], ["#Lag", (each) => short(each.row.lag)],
    ["#Delivered", (each) => rate(current(each, "out"))], ["#Gone in", gone]]);
  const more = button("Show more", () => { shown += PAGE; update(); });
  function update() {
    const some = [...live.groups.values()].filter((each) => each.name.toLowerCase().includes(filter.value.toLowerCase()))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
    say(count, plural(some.length, "group"));
    none.hidden = live.groups.size > 0;
    more.hidden = some.length <= shown;
    list.draw(some.slice(0, shown));
  }
  return { title: "Groups", update, node: el("div", {}, head("Groups", count), el("div", { className: "tools" }, filter), list.node, none, more) };
}
