/** The journey of a message as one picture: a line for the log and one for each group, from left to right. Time is
 * drawn by the logarithm of each gap, so that a millisecond and an hour are both to be seen. */
import { el, moment, span, svg } from "./dom.js";

const LANE = 58, TOP = 26, LABEL = 16, SIDE = 18;
/** Of each step: its words, its colour, and whether it ends a delivery. */
export const STEPS = {
  "publish.received": ["received", "ready"], "publish.persisted": ["on disk", "settled"], "publish.replicated": ["replicated", "settled"],
  "publish.refused": ["refused", "dead"], "delay.scheduled": ["scheduled", "scheduled"], "delay.due": ["due", "ready"],
  "delay.cancelled": ["cancelled", "dead"], "consume.fetched": ["fetched", "settled"], "consume.leased": ["leased", "leased"],
  "consume.extended": ["lease extended", "leased"], "consume.returned": ["returned", "waiting", true], "consume.acked": ["acked", "settled", true],
  "consume.nacked": ["nacked", "waiting", true], "consume.lease_ended": ["lease ended", "waiting", true],
  "consume.rejected": ["rejected", "dead", true], "consume.expired": ["expired", "dead", true],
  "dead_letter.written": ["dead-lettered", "dead"], "dead_letter.redriven": ["redriven", "scheduled"],
  "consume.replayed": ["replayed", "scheduled"], "log.removed": ["removed by retention", "dead"],
};
const about = (step) => STEPS[step.event_type] || [step.event_type, "ready"];

/** Where each moment is, between 0 and 1. */
function scale(moments) {
  const sorted = [...new Set(moments)].sort((one, other) => one - other);
  const at = new Map();
  let sum = 0;
  sorted.forEach((each, index) => { if (index) sum += 0.8 + Math.log10(1 + each - sorted[index - 1]); at.set(each, sum); });
  return (ms) => (sum ? at.get(ms) / sum : 0);
}

function lanes(steps, groups) {
  const found = new Map([["", { name: "log", steps: [], state: "" }]]);
  for (const each of groups) found.set(each.group, { name: each.group, steps: [], state: each.state, until: each.until });
  for (const step of steps) {
    const name = step.details.consumer_group || "";
    if (!found.has(name)) found.set(name, { name, steps: [], state: "" });
    found.get(name).steps.push(step);
  }
  return [...found.values()].filter((each) => each.steps.length || each.state);
}

/** @param {any[]} steps as `why` tells them @param {any[]} groups likewise */
export function journey(steps, groups, width, now) {
  const ms = (step) => Date.parse(step.timestamp);
  const rows = lanes(steps, groups);
  const goesOn = rows.filter((each) => ["leased", "waiting"].includes(each.state) && each.until);
  const ends = goesOn.map((each) => Date.parse(each.until)).filter((each) => each > now);
  const open = rows.some((each) => !["settled", "dead-lettered", "expired", "removed", "read", ""].includes(each.state));
  const place = scale([...steps.map(ms), ...ends, ...(open ? [now] : [])]);
  const x = (at) => SIDE + place(at) * (width - 2 * SIDE);
  const height = TOP + rows.length * LANE;
  const whole = svg("svg", { class: "journey", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": "The journey as a picture; the list below tells the same" });
  if (open) whole.append(svg("line", { class: "now", x1: x(now), x2: x(now), y1: 14, y2: height }),
    svg("text", { class: "now", x: x(now), y: 10, "text-anchor": place(now) > 0.9 ? "end" : "middle" }, "now"));
  rows.forEach((row, index) => {
    const y = TOP + index * LANE + LABEL + 6;
    whole.append(svg("text", { class: "lane", x: SIDE - 8, y: y - LABEL + 2 }, row.name),
      svg("line", { class: "track", x1: SIDE, x2: width - SIDE, y1: y, y2: y }));
    let held = null;
    const piece = (kind, from, to, title) => whole.append(svg("line", { class: "piece " + kind, x1: x(from), x2: Math.max(x(to), x(from) + 2), y1: y, y2: y },
      svg("title", {}, title)));
    row.steps.forEach((step, at) => {
      const [words, kind, isEnd] = about(step);
      if (step.event_type === "consume.leased") held = step;
      else if (isEnd && held) { piece(kind, ms(held), ms(step), `${held.details.consumer_id || "somebody"}: ${words} after ${span(ms(step) - ms(held))}`); held = null; }
      else if (at && row.name === "log") piece("ready", ms(row.steps[at - 1]), ms(step), words);
    });
    const until = ends.length && row.until ? Date.parse(row.until) : 0;
    if (held && open) piece("leased", ms(held), now, "held by " + (held.details.consumer_id || "somebody"));
    if (until > now) whole.append(svg("line", { class: "piece coming " + row.state, x1: x(now), x2: x(until), y1: y, y2: y },
      svg("title", {}, row.state + " until " + row.until)));
    for (const step of row.steps) whole.append(svg("circle", { class: "dot " + about(step)[1], cx: x(ms(step)), cy: y, r: 5.5 },
      svg("title", {}, about(step)[0] + " at " + step.timestamp)));
    const last = row.steps.at(-1);
    const since = last || (row.state && steps.findLast((each) => /persisted|due/.test(each.event_type)));
    if (since && ["ready", "held", "not read"].includes(row.state)) whole.append(svg("line", { class: "piece coming ready", x1: x(ms(since)), x2: x(now), y1: y, y2: y },
      svg("title", {}, row.state + " for " + span(now - ms(since)))));
    if (last) whole.append(svg("text", { class: "word", x: x(ms(last)), y: y + 20, "text-anchor": place(ms(last)) > 0.85 ? "end" : place(ms(last)) < 0.15 ? "start" : "middle" }, about(last)[0]));
  });
  return whole;
}

/** The same as a list, in words. */
export function told(steps) {
  return el("ol", { className: "steps" }, steps.map((step, at) => {
    const [words, kind] = about(step);
    const gap = at ? Date.parse(step.timestamp) - Date.parse(steps[at - 1].timestamp) : 0;
    const { consumer_group: group, consumer_id: consumer, detail } = step.details;
    return el("li", { className: kind }, el("span", { className: "gap", textContent: at ? "+" + span(gap) : "" }),
      el("span", { className: "what" }, el("strong", { textContent: words }), group ? " in " + group : "", consumer ? " by " + consumer : "",
        detail && el("span", { className: "detail", textContent: detail })), moment(step.timestamp));
  }));
}
