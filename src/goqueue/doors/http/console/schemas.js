/** The registry: subjects, the versions of one beside each other with what differs, and whether its topic is checked. */
import { button, card, chip, el, empty, grid, head, link, linked, number, plural, say } from "./dom.js";
import { get, path } from "./api.js";
import { live } from "./live.js";
import { act } from "./actions.js";
import { pretty } from "./content.js";

const LINES_MAX = 1000;

export const schemas = ([subject]) => (subject ? versions(subject) : subjects());

function subjects() {
  const stopper = new AbortController();
  const count = el("span", { className: "dim", role: "status" }), none = empty("There are no schemas yet.");
  const list = grid("Subjects", (each) => each.subject, [["Subject", linked((each) => each.subject, (each) => ["schemas", each.subject])],
    ["#Versions", (each) => number(each.versionCount)], ["#Latest", (each) => each.latestVersion], ["#Id", (each) => each.latestSchemaId], ["New versions must fit", (each) => each.compatibility]]);
  const node = el("div", {}, head("Schemas", count, button("Register a schema", () => act("schema", {}, load), "primary action")), list.node, none);
  async function load() {
    try {
      const told = await get("/schemas/stats", {}, stopper.signal);
      list.draw(told.subjectStats);
      none.hidden = told.subjectStats.length > 0;
      say(count, plural(told.subjects, "subject") + (told.rejectedTotal ? ", " + plural(told.rejectedTotal, "message") + " turned away" : ""));
    } catch (error) { if (!stopper.signal.aborted) say(count, error.message); }
  }
  load();
  return { node, title: "Schemas", close: () => stopper.abort() };
}

function versions(subject) {
  const stopper = new AbortController();
  let known = new Map(), level = "", latest = null, there = false;
  const topic = subject.replace(/-(value|key)$/, "");
  const about = chip(""), checked = el("p", { className: "dim" }), wrong = el("p", { className: "wrong", role: "alert" });
  const choice = (label) => el("select", { ariaLabel: label, onchange: () => draw() });
  const older = choice("Older version"), newer = choice("Newer version");
  const left = el("pre", { className: "value", tabIndex: 0, ariaLabel: "Older version" }), right = el("pre", { className: "value", tabIndex: 0, ariaLabel: "Newer version" });
  const same = el("p", { className: "dim", role: "status" });
  const node = el("div", {}, el("p", { className: "crumbs" }, link("Schemas", "schemas")), head(subject, about, el("span", { className: "actions" },
    button("New version", () => act("schema", { first: { subject, type: latest?.schemaType || "AVRO", schema: latest ? shown(latest) : "" } }, load), "primary action"),
    button("Compatibility", () => act("compatibility", { subject, level }, load), "action"))), checked, wrong,
  card("Versions", same, el("div", { className: "two diff" }, el("div", {}, older, left), el("div", {}, newer, right))));

  const shown = (each) => (each.schemaType === "PROTOBUF" ? each.schema : pretty(each.schema));

  async function read(version) {
    if (!known.has(version)) known.set(version, await get(path`/subjects/${subject}/versions/${version}`, {}, stopper.signal));
    return known.get(version);
  }

  async function draw() {
    try {
      const [one, other] = await Promise.all([read(older.value), read(newer.value)]);
      const [before, after] = differ(shown(one).split("\n").slice(0, LINES_MAX), shown(other).split("\n").slice(0, LINES_MAX));
      left.replaceChildren(...before);
      right.replaceChildren(...after);
      const changed = [...before, ...after].filter((each) => each.tagName !== "SPAN").length;
      say(same, older.value === newer.value ? "One version, to itself." : changed ? plural(changed, "line") + " differ." : "Nothing differs.");
    } catch (error) { if (!stopper.signal.aborted) say(wrong, error.message); }
  }

  async function load() {
    try {
      const [numbers, config] = await Promise.all([get(path`/subjects/${subject}/versions`, {}, stopper.signal), get(path`/config/${subject}`, { defaultToGlobal: "true" }, stopper.signal)]);
      for (const each of [older, newer]) each.replaceChildren(...numbers.map((one) => el("option", { value: String(one), textContent: "version " + one })));
      newer.value = String(numbers.at(-1));
      older.value = String(numbers.at(-2) ?? numbers.at(-1));
      latest = await read(newer.value);
      level = config.compatibilityLevel;
      say(about, latest.schemaType + ", " + level);
      await look();
      await draw();
    } catch (error) { if (!stopper.signal.aborted) say(wrong, error.message); }
  }

  async function look() {
    there = live.topics.has(topic);
    const way = there && ((await get(path`/topics/${topic}`, {}, stopper.signal)).options["schema.validation"] || "as the node says");
    say(checked, there ? "What is published to " + topic + " is checked: " + way + " (schema.validation)." : "There is no topic " + topic + ".");
  }
  load();
  return { node, title: subject, update: () => { if (there !== live.topics.has(topic)) look().catch(() => {}); }, close: () => stopper.abort() };
}

/** Lines of both, those that only one has marked: by the longest run of lines that both have in common. */
function differ(one, other) {
  const longest = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let at = one.length - 1; at >= 0; at--) for (let to = other.length - 1; to >= 0; to--)
    longest[at][to] = one[at] === other[to] ? longest[at + 1][to + 1] + 1 : Math.max(longest[at + 1][to], longest[at][to + 1]);
  const before = [], after = [];
  const add = (list, tag, line) => list.push(el(tag, { textContent: line + "\n" }));
  let at = 0, to = 0;
  while (at < one.length || to < other.length) {
    if (at < one.length && one[at] === other[to]) { add(before, "span", one[at++]); add(after, "span", other[to++]); }
    else if (to >= other.length || (at < one.length && longest[at + 1][to] >= longest[at][to + 1])) add(before, "del", one[at++]);
    else add(after, "ins", other[to++]);
  }
  return [before, after];
}
