/** What is due when: delayed messages as bars over time, and schedules with their next run. */
import { ago, button, card, el, empty, grid, head, linked, say, number, single, timed } from "./dom.js";
import { get, path } from "./api.js";
import { bars } from "./charts.js";
import { live } from "./live.js";
import { act } from "./actions.js";

const LIMIT = 1000, SHOWN = 100, BINS = 48, EVERY = 30, TOPICS_MAX = 20;

export function time() {
  const stopper = new AbortController();
  let tick = 0, messages = [], shown = [], runs = [], known = "", zoom = null;
  const picture = el("div"), words = el("p", { className: "dim", role: "status" }), none = empty("Nothing waits for its time."), never = empty("There are no schedules.");
  const all = button("Show all", () => { zoom = null; draw(); });
  const at = (each) => [each.topic, each.partition, each.offset];
  const list = grid("Delayed messages", (each) => at(each).join("/"), [["Message", linked((each) => at(each).join("/"), (each) => ["topics", ...at(each)])],
    ["Due", timed((each) => each.deliver_at)], ["In", (each) => ago(each.deliver_at)],
    ["", (each, known) => known || el("span", { className: "actions action" }, button("Move", () => act("move", given(each), load)), button("Cancel", () => act("cancel", given(each), load), "danger"))]]);
  const given = (each) => ({ topic: each.topic, partition: each.partition, offset: each.offset });
  const schedules = grid("Schedules", (each) => each.name, [["Schedule", (each) => each.name], ["Topic", linked((each) => each.topic, (each) => ["topics", each.topic])], ["Cron", (each) => each.cron + " " + each.timezone],
    ["Next run", (each) => (each.paused ? "paused" : each.next_run ? each.next_run + " (" + ago(each.next_run) + ")" : "never")], ["Last run", (each) => (each.last_run ? ago(each.last_run) : "never")],
    ["", (each, known) => {
      const cell = known || el("span", { className: "actions action" }, button("Run now", () => act("run", { name: each.name }, load)),
        button("", () => act((cell.paused ? "resume" : "pause") + "-schedule", { name: each.name }, load)), button("Delete", () => act("delete-schedule", { name: each.name }, load), "danger"));
      cell.paused = each.paused;
      say(cell.children[1], each.paused ? "Resume" : "Pause");
      return cell;
    }]]);
  const node = el("div", {}, head("Time", button("New schedule", () => act("schedule", {}, load), "primary action")), card("Delayed messages", picture, el("div", { className: "tools" }, words, all), list.node, none), card("Schedules", schedules.node, never));

  function draw() {
    const some = messages.filter((each) => !zoom || (each.ms >= zoom.from && each.ms < zoom.to));
    const from = zoom?.from ?? Math.min(...some.map((each) => each.ms)), to = zoom?.to ?? Math.max(...some.map((each) => each.ms)) + 1;
    const step = Math.max(1, (to - from) / BINS);
    const bins = Array.from({ length: BINS }, (_, index) => ({ from: from + index * step, to: from + (index + 1) * step, count: 0 }));
    for (const each of some) bins[Math.min(BINS - 1, Math.floor((each.ms - from) / step))].count++;
    picture.replaceChildren(...(some.length ? [bars(bins, "How many are due when", (bin) => { if (to - from > BINS) { zoom = bin; draw(); } })] : []));
    list.draw((shown = some.slice(0, SHOWN)));
    none.hidden = messages.length > 0;
    all.hidden = !zoom;
    say(words, some.length ? number(some.length) + " due from " + new Date(from).toLocaleString("sv") + " to " + new Date(to).toLocaleString("sv") : "");
  }

  const delayed = () => [...live.topics.values()].filter((each) => each.row.delayed).slice(0, TOPICS_MAX);

  const load = single(async () => {
    try {
      const topics = delayed();
      const pages = await Promise.all(topics.map((each) => get(path`/topics/${each.name}/delayed`, { limit: LIMIT }, stopper.signal)));
      messages = pages.flatMap((each) => each.messages).map((each) => ({ ...each, ms: Date.parse(each.deliver_at) })).sort((one, other) => one.ms - other.ms);
      draw();
      const told = await get("/schedules", {}, stopper.signal);
      schedules.draw((runs = told.schedules));
      never.hidden = told.schedules.length > 0;
    } catch (error) { if (!stopper.signal.aborted) say(words, error.message); }
  });

  /** Times are told anew each second; the node is asked when something has changed, and now and then for schedules. */
  function update() {
    const now = JSON.stringify(delayed().map((each) => [each.name, each.row.delayed]));
    if (tick++ % EVERY === 0 || now !== known) { known = now; load(); }
    list.draw(shown);
    schedules.draw(runs);
  }
  return { node, title: "Time", update, close: () => stopper.abort() };
}
