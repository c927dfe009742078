/** One message: what it says, its journey, and for every group why it is where it is. One address each. */
import { button, card, chip, el, empty, head, link, moment, number, say, span } from "./dom.js";
import { get, path } from "./api.js";
import { act } from "./actions.js";
import { bytesOf, facts, value } from "./content.js";
import { journey, told } from "./journey.js";

const EVERY_MS = 1000;
const OVER = new Set(["settled", "dead-lettered", "expired", "removed", "cancelled", "aborted", "read"]);
export const kind = (state) => ({ scheduled: "scheduled", ready: "ready", leased: "leased", waiting: "waiting", held: "waiting", settled: "settled",
  read: "settled", "not read": "ready", paused: "leased" }[state] || "dead");

export function message([name, partition, offset]) {
  const stopper = new AbortController();
  let timer = 0, shown = "", skew = 0, where = null, content = null;
  const members = new Map();
  const answer = el("p", { className: "sentence", role: "status" });
  const picture = el("div", { className: "picture" }), list = el("div"), groups = el("div", { className: "whys" });
  const body = el("div", {}, empty("reading …")), about = el("div");
  const copy = button("Copy link", async () => { await navigator.clipboard.writeText(location.href); say(copy, "Copied"); });
  copy.hidden = !navigator.clipboard; /* which a browser has for https and localhost alone */
  const again = button("Publish again", () => act("publish", { topic: name, message: content }), "action");
  again.hidden = true;
  const actions = el("span", { className: "actions" }, copy, again);
  const crumbs = el("p", { className: "crumbs" }, link("Topics", "topics"), " / ", link(name, "topics", name), " / partition " + partition);
  const node = el("div", {}, crumbs, head(name + "/" + partition + "/" + offset, actions), answer,
    card("Journey", picture, list), groups, el("div", { className: "two" }, card("Value", body), card("About", about)));

  function draw() {
    const now = Date.now() + skew;
    const width = Math.max(280, picture.clientWidth || node.clientWidth || 800);
    picture.replaceChildren(journey(where.events, where.groups, width, now));
    for (const each of groups.querySelectorAll("[data-until]")) {
      const left = Date.parse(each.dataset.until) - now;
      say(each, left > 0 ? span(left) + " left" : "any moment now");
    }
  }

  /** A member of a group holds under an id; who that is its group says. */
  function named(each) {
    const name = members.get(each.consumer);
    if (each.consumer && name === undefined) {
      members.set(each.consumer, "");
      get(path`/groups/${each.group}`, {}, stopper.signal).then((told) => {
        for (const one of told.members) members.set(one.member_id, one.client_id);
        shown = "";
        show();
      }, () => {});
    }
    return name && name !== each.consumer ? name + " (" + each.consumer + ")" : each.consumer;
  }

  function why(each) {
    const parts = [el("h3", {}, link(each.group, "groups", each.group)), chip(each.state, kind(each.state))];
    const left = each.until && el("strong", { className: "left" });
    if (left) left.dataset.until = each.until;
    const place = { topic: name, group: each.group, partition: Number(partition), offset: where.offset };
    const held = each.kind === "queue" && ["leased", "waiting", "ready", "held", "paused"].includes(each.state);
    return el("section", { className: "card why " + kind(each.state) }, el("header", {}, parts, left), el("p", { textContent: each.answer }),
      facts([["Lane", each.lane], ["Attempts", each.attempts], ["Held by", named(each)], ["Ahead of it", each.ahead],
        ["Behind", each.behind_offset !== undefined && link("offset " + each.behind_offset, "topics", name, partition, String(each.behind_offset))],
        ["Committed", each.committed_offset]]),
      held && el("span", { className: "actions action" },
        each.state === "leased" && [button("Extend", () => act("extend", place)), button("Release the lease", () => act("release", place))],
        each.state === "paused" && button("Resume the group", () => act("resume-group", { name: each.group })), button("Acknowledge", () => act("settle", place))));
  }

  /** Of what is not over yet, if there is such a group. */
  const state = () => where.groups.find((each) => !OVER.has(each.state))?.state || where.groups[0]?.state || where.state;

  function show() {
    say(answer, where.answer);
    answer.className = "sentence " + kind(state());
    const now = JSON.stringify([where.events, where.groups]);
    if (now !== shown) {
      shown = now;
      list.replaceChildren(told(where.events));
      groups.replaceChildren(...where.groups.map(why));
      if (!where.groups.length) groups.replaceChildren(empty("No group has read this topic yet: the message waits for the first."));
    }
    draw();
  }

  function describe() {
    const size = bytesOf(content || {})?.length;
    about.replaceChildren(facts([["Key", content?.key ?? where.key], ["Published", content ? moment(content.timestamp) : where.timestamp && moment(where.timestamp)],
      ["Lane", content?.priority], ["Size", size !== undefined && number(size) + " bytes"], ["Node", where.node],
      ["Place", where.first_offset !== where.offset && "was " + where.first_offset + " until it was due"],
      ["Trace", el("code", { textContent: where.trace_id })], ...Object.entries(content?.headers || {}).map(([key, each]) => ["Header " + key, each ?? ""])]));
  }

  async function load() {
    clearTimeout(timer);
    if (document.hidden) { timer = setTimeout(load, EVERY_MS); return; }
    try {
      where = await get(path`/topics/${name}/partitions/${partition}/messages/${offset}/why`, {}, stopper.signal);
      if (content === null) await read();
      show();
      if (where.groups.length && OVER.has(state())) return;
    } catch (error) {
      if (stopper.signal.aborted) return;
      if (error.status) { say(answer, error.message); answer.className = "sentence dead"; if (error.status < 500) return; }
    }
    timer = setTimeout(load, EVERY_MS);
  }

  async function read() {
    const at = { offset: where.offset, limit: 1 };
    const found = where.state === "scheduled" ? [await get(path`/topics/${name}/delayed/${partition}/${offset}`, {}, stopper.signal)]
      : (await get(path`/topics/${name}/partitions/${partition}/messages`, at, stopper.signal)).messages;
    const mine = found.find((each) => each.offset === where.offset);
    body.replaceChildren(mine ? value(mine) : empty("Its content is not there any more."));
    content = mine && { timestamp: mine.published_at, ...mine };
    again.hidden = !mine;
    describe();
  }

  const sized = new ResizeObserver(() => where && draw());
  sized.observe(picture);
  load();
  return { node, title: name + "/" + partition + "/" + offset, reload: load, close: () => { stopper.abort(); clearTimeout(timer); sized.disconnect(); } };
}
