/** One topic: its partitions, its options, who reads it, and its messages, browsed or followed. */
import { button, bytes, card, chip, el, empty, grid, head, linked, number, plural, rate, say, short, single, timed } from "./dom.js";
import { BASE, address, get, path } from "./api.js";
import { spark } from "./charts.js";
import { current, live } from "./live.js";
import { act } from "./actions.js";
import { preview } from "./content.js";

const LIMIT = 20;
const FOLLOWED_MAX = 200;
const DRAW_MS = 100;

export function topic([name]) {
  const stopper = new AbortController();
  const chart = spark("published in the last minute", 240, 44), out = spark("delivered in the last minute", 240, 44);
  const rates = el("strong"), outs = el("strong"), counts = el("strong"), rest = el("span", { className: "dim" });
  let offsets = {};
  const options = el("dl", { className: "facts" });
  const groups = grid("Groups", (each) => each.name, [["Group", linked((each) => each.name, (each) => ["groups", each.name])],
    ...[["#Ready", "ready"], ["#In flight", "in_flight"], ["#Waiting", "waiting"], ["#Lag", "lag"]].map(([title, field]) =>
      [title, (each) => short(each.topics.get(name)[field])])]);
  const partitions = grid("Partitions", (each) => each.partition, [["Partition", (each) => each.partition],
    ["#First", (each) => number(offsets[each.partition]?.earliest)], ["#Next", (each) => number(offsets[each.partition]?.next)],
    ["Leader", (each) => each.leader + (each.isr.length < each.replicas.length ? ", copies are behind" : "")]]);
  const nobody = empty("No group reads this topic.");
  const gone = empty("This topic is not there."), failed = el("p", { className: "wrong", role: "alert" });
  const pause = button("Pause", () => act((live.topics.get(name)?.row.paused ? "resume" : "pause") + "-topic", { name }, load), "action");
  const state = chip("paused", "leased");
  state.hidden = true;
  const browser = messages(name, stopper.signal);
  const node = el("div", {}, head(name, state, el("span", { className: "actions" },
    button("Publish", () => act("publish", { topic: name }), "primary action"),
    pause,
    button("Options", () => act("options", { topic: name }, load), "action"),
    button("Add partitions", () => act("partitions", { topic: name, count: live.topics.get(name)?.row.partitions || 0 }, load), "action"),
    button("Compact", () => act("compact", { topic: name }), "action"),
    button("Delete", () => act("delete-topic", { topic: name }), "danger action"))), gone, failed,
  el("div", { className: "tiles" },
    el("div", { className: "tile" }, el("span", { className: "name", textContent: "Published" }), rates, chart),
    el("div", { className: "tile" }, el("span", { className: "name", textContent: "Delivered" }), outs, out),
    el("div", { className: "tile" }, el("span", { className: "name", textContent: "Messages" }), counts, rest)),
  browser.node,
  el("div", { className: "two" },
    card("Groups that read it", groups.node, nobody), card("Partitions", partitions.node)),
  card("Options that were set", options));

  const load = single(async () => {
    try {
      const [told, placed] = await Promise.all([get(path`/topics/${name}`, {}, stopper.signal),
        get(path`/topics/${name}/partitions`, {}, stopper.signal)]);
      gone.hidden = true;
      say(failed, "");
      browser.partitions(told.partitions);
      offsets = told.partition_offsets;
      partitions.draw(placed.partitions);
      const set = Object.entries(told.options);
      options.replaceChildren(...(set.length ? set : [["all", "as the node says"]]).flatMap(([key, value]) =>
        [el("dt", { textContent: key }), el("dd", { textContent: value })]));
    } catch (error) {
      if (stopper.signal.aborted || !error.status) return;
      if (error.status === 404) gone.hidden = false;
      else say(failed, error.message);
    }
  });

  let published = -1;
  function update() {
    const entry = live.topics.get(name);
    gone.hidden = Boolean(entry);
    if (!entry) return;
    say(rates, rate(current(entry, "in")));
    state.hidden = !entry.row.paused;
    say(pause, entry.row.paused ? "Resume" : "Pause");
    say(outs, rate(current(entry, "out")));
    chart.draw(entry.rates.in);
    out.draw(entry.rates.out);
    say(counts, short(entry.row.messages));
    say(rest, bytes(entry.row.size_bytes) + (entry.row.delayed ? ", " + plural(entry.row.delayed, "message") + " delayed" : ""));
    const some = [...live.groups.values()].filter((each) => each.topics.has(name));
    nobody.hidden = some.length > 0;
    groups.draw(some);
    if (entry.row.published !== published) {
      if (published >= 0) browser.grew();
      published = entry.row.published;
      load();
    }
  }
  load();
  return { node, update, title: name, close: () => { stopper.abort(); browser.close(); } };
}

/** The latest messages, those from an offset or a time on, or all as they come. */
function messages(name, signal) {
  let partitions = 0, stream = null, waiting = [], timer = 0, cursor = null, isAway = false;
  const partition = el("select", { ariaLabel: "Partition", onchange: () => (stream ? tail() : load()) });
  const from = el("input", { placeholder: "latest, an offset, or a time (-10m)", ariaLabel: "From", onchange: () => load() });
  const contains = el("input", { type: "search", placeholder: "with this text (followed)", ariaLabel: "Text that the value holds", onchange: () => stream && tail() });
  const follow = el("button", { type: "button", ariaPressed: "false", textContent: "Follow", onclick: () => (stream ? stop() : tail()) });
  const wrong = el("p", { className: "wrong", role: "alert" });
  const rows = grid("Messages", (each) => each.partition + "/" + each.offset, [
    ["Place", linked((each) => each.partition + "/" + each.offset, (each) => ["topics", name, each.partition, each.offset])],
    ["Time", timed((each) => each.timestamp)], ["Key", (each) => each.key],
    ["Value", (each, known) => known || el("span", { className: "clip" }, each.priority !== "normal" && chip(each.priority, "scheduled"),
      preview(each))]]);
  const none = empty("There are no messages here.");
  const more = button("Go on", () => load(cursor));
  const node = card("Messages", el("div", { className: "tools" }, partition, from, contains, follow), wrong,
    rows.node, none, more);

  const draw = (some) => { rows.draw(some); none.hidden = some.length > 0; };

  async function latest(at) {
    const told = await get(path`/topics/${name}`, {}, signal);
    const ends = Object.entries(told.partition_offsets).filter(([number]) => at === "" || number === at);
    const each = Math.max(1, Math.floor(LIMIT / Math.max(1, ends.length)));
    const pages = await Promise.all(ends.slice(0, LIMIT).map(([number, end]) => get(path`/topics/${name}/partitions/${number}/messages`,
      { offset: Math.max(end.earliest, end.next - each), limit: each }, signal)));
    return pages.flatMap((page) => page.messages).sort((one, other) => (one.timestamp < other.timestamp ? 1 : -1));
  }

  const load = single(async (start) => {
    if (stream) return;
    say(wrong, "");
    try {
      const words = start === undefined ? from.value.trim() : String(start);
      cursor = null;
      if (!words || words === "latest") show(await latest(partition.value));
      else {
        const at = partition.value || "0";
        partition.value = at;
        const told = await get(path`/topics/${name}/partitions/${at}/messages`,
          { limit: LIMIT, ...(/^\d+$/.test(words) ? { offset: words } : { from_time: words }) }, signal);
        if (told.messages.length === LIMIT) cursor = told.next_offset;
        show(told.messages);
      }
      more.hidden = cursor === null || Boolean(stream);
    } catch (error) { if (!signal.aborted && !stream) say(wrong, error.message); }
  });

  /** What was asked for before somebody began to follow is not wanted any more. */
  const show = (some) => { if (!stream) draw(some); };

  function tail(isBack) {
    stop();
    if (!isBack) draw((waiting = []));
    more.hidden = true;
    say(wrong, "");
    const mine = stream = new EventSource(BASE + address(path`/topics/${name}/follow`, { partition: partition.value, contains: contains.value }));
    mine.addEventListener("message", (event) => { waiting = [JSON.parse(event.data), ...waiting].slice(0, FOLLOWED_MAX);
      timer ||= setTimeout(() => { timer = 0; draw(waiting); }, DRAW_MS); });
    mine.addEventListener("open", () => say(follow, "Stop following"));
    mine.addEventListener("error", () => {
      if (mine !== stream) return;
      if (mine.readyState !== EventSource.CLOSED) { say(follow, "Opening …"); return; }
      stop();
      say(wrong, "The node has ended the stream.");
    });
    follow.setAttribute("aria-pressed", "true");
    say(follow, "Opening …");
  }

  function stop() {
    stream?.close();
    stream = null;
    clearTimeout(timer);
    timer = 0;
    follow.setAttribute("aria-pressed", "false");
    say(follow, "Follow");
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden ? !stream : !isAway) return;
    isAway = document.hidden;
    if (isAway) stop();
    else tail(true);
  }, { signal });

  return { node, close: stop,
    grew: () => { if (!from.value && !rows.node.contains(document.activeElement)) load(); },
    partitions: (count) => {
      if (count === partitions) return;
      partitions = count;
      partition.replaceChildren(el("option", { value: "", textContent: "all partitions" }),
        ...Array.from({ length: count }, (_, at) => el("option", { value: String(at), textContent: "partition " + at })));
      load();
    } };
}
