/** The rest of what can be changed: pauses, leases, reading again, forks, partitions, schedules, schemas. */
import { plural } from "./dom.js";
import { patch, path, post, put, remove } from "./api.js";
import { picked, place, spot, whole } from "./actions.js";

const options = (at, delivery) => patch(at, { options: { delivery } });
const where = (text) => (/^\d+$/.test(text) ? Number(text) : text);
const flags = (given, ...names) => names.flatMap((each) => (given[each] ? ["--" + each, given[each]] : []));

/** Pause and resume, of a group, a topic or a schedule. */
function pauses(kind, words, request) {
  const of = (verb) => (given) => [kind, verb, given.name];
  return { ["pause-" + kind]: { title: "Pause the " + kind, go: "Pause", fields: [], words: () => words, request: (given) => request(given.name, true), cli: of("pause"), done: () => ["It is paused."] },
    ["resume-" + kind]: { title: "Resume the " + kind, go: "Resume", fields: [], request: (given) => request(given.name, false), cli: of("resume"), done: () => ["It goes on."] } };
}

const schema = (given) => ({ schema: given.schema, schemaType: given.type });
const checked = (told) => [told.is_compatible ? "It can be registered." : "It does not fit: " + (told.messages || []).join("; ")];

export const MORE = {
  ...pauses("group", "Nothing is delivered to it as a queue any more. What it reads as a stream it reads on. What its consumers hold they may settle, and messages are taken in as before.",
    (name, is) => options(path`/groups/${name}/options`, is ? "paused" : null)),
  ...pauses("topic", "Queue groups are given nothing of it any more. Messages are taken in, and streams are read, as before.",
    (name, is) => options(path`/topics/${name}`, is ? "paused" : null)),
  ...pauses("schedule", "It does not run until it is resumed, and then makes up for nothing.", (name, is) => post(is ? path`/schedules/${name}/pause` : path`/schedules/${name}/resume`)),
  extend: { title: "Hold the lease longer", go: "Extend", fields: [["timeout", "It ends so long from now", "10m"]], words: (given) => "Whoever holds " + spot(given) + " in " + given.group + " gets more time for it.",
    request: (given) => { const found = place("extend").request(given); found.body.timeout = given.timeout; return found; },
    cli: (given) => [...place("extend").cli(given), "--for", given.timeout] },
  "stop-redrive": { title: "Stop the redrive", go: "Stop", danger: true, fields: [], words: () => "What is on its way goes out. The rest stays where it is.",
    request: (given) => remove(path`/topics/${given.topic}/dlq/redrive`), cli: (given) => ["dlq", "stop", given.topic],
    done: (told) => [told.state + ": " + plural(told.redriven, "message") + " sent back."] },
  partitions: { title: "Add partitions", go: "Add", fields: [["count", "So many it shall have"]], words: () => "There is no way back. Messages of a key that are published from now on may go to another partition than before.",
    begin: ({ count }) => ({ count: String(count + 1) }), request: (given) => post(path`/admin/topics/${given.topic}/partitions`, { count: whole(given.count) }),
    cli: (given) => ["topic", "alter", given.topic, "--partitions", given.count] },
  compact: { title: "Compact the topic now", go: "Compact", fields: [], words: () => "Of every key only the last message stays. A node does this by itself when it is worth it.",
    request: (given) => post(path`/admin/topics/${given.topic}/compact`, {}), cli: (given) => ["topic", "compact", given.topic],
    dry: (told) => [gone(told) + " would go."], done: (told) => [gone(told) + " went." + told.results.filter((each) => each.error).map((each) => " Partition " + each.partition + ": " + each.error).join("")] },
  schedule: { title: "New schedule", go: "Make it", fields: [["name", "Name"], ["topic", "Topic"], ["cron", "Cron", "0 7 * * *"], ["timezone", "Time zone", "UTC"], ["key", "Key?"], ["value", "Message", "text"]],
    request: (given) => put(path`/schedules/${given.name}`, { topic: given.topic, cron: given.cron, timezone: given.timezone, value: given.value, ...picked(given, "key") }),
    cli: (given) => ["schedule", "set", given.name, given.topic, "--cron", given.cron, "-m", given.value, "--timezone", given.timezone, ...flags(given, "key")], done: (told) => ["It runs next at " + told.next_run + "."] },
  "delete-schedule": { title: "Delete the schedule", danger: true, go: "Delete", fields: [], words: (given) => given.name + " does not run any more.",
    request: (given) => remove(path`/schedules/${given.name}`), cli: (given) => ["schedule", "delete", given.name] },
  replay: { title: "Deliver a part of a topic again", go: "Replay", fields: [["topic", "Topic"], ["from", "From: an offset, or a time", "-1h"], ["to", "Up to, without it", "latest"], ["key", "Only of this key?"],
    ["contains", "Only those whose value holds?"], ["rate", "At most so many a second?"], ["fork_as", "Into a fork of this name, and not to the group itself?"]], begin: ({ topics }) => ({ topic: topics?.[0] || "" }),
    words: () => "Beside its ordinary work. What the group has not settled yet is left as it is.",
    request: (given) => post(path`/groups/${given.group}/replay`, { topic: given.topic, from: where(given.from), to: where(given.to), filter: picked(given, "key", "contains"), rate: whole(given.rate), ...picked(given, "fork_as") }),
    cli: (given) => ["replay", given.group, given.topic, "--from", given.from, "--to", given.to, ...flags(given, "key", "contains", "rate"), ...(given.fork_as ? ["--fork-as", given.fork_as] : [])],
    dry: (told) => [plural(told.messages, "message") + " would be delivered again."], done: (told) => [plural(told.messages, "message") + " will be delivered to " + told.group + ".", ["groups", told.group]] },
  fork: { title: "Fork the group", go: "Fork", fields: [["fork", "Name of the fork"]], words: (given) => "A new group that has settled what " + given.group + " has settled, and goes its own way.",
    request: (given) => post(path`/groups/${given.group}/fork`, { name: given.fork }), cli: (given) => ["group", "fork", given.group, given.fork], done: (told) => [told.fork + " is there.", ["groups", told.fork]] },
  compare: { title: "Compare with another group", go: "Compare", fields: [["other", "The other group, such as a fork"]], words: () => "Nothing is changed by this.", begin: (known) => picked(known, "other"),
    request: (given) => ({ method: "GET", at: path`/groups/${given.group}/compare`, query: { with: given.other } }), cli: (given) => ["group", "compare", given.group, given.other],
    done: (told) => [told.is_equal ? "Both have settled the same." : told.differences.map((each) => each.topic + "/" + each.partition + ": " + settled(told.group, each.only_group) + settled(told.with, each.only_with)).join(" ")] },
  promote: { title: "Let the group take over from its fork", danger: true, go: "Promote", fields: [["fork", "Name of the fork"]], words: (given) => "What the fork has settled is settled for " + given.group + ", what it has not is delivered. The fork is gone then.", begin: (known) => picked(known, "fork"),
    request: (given) => post(path`/groups/${given.group}/promote`, { fork: given.fork }), cli: (given) => ["group", "promote", given.group, given.fork] },
  "delete-fork": { title: "Delete the fork", danger: true, go: "Delete", fields: [], words: (given) => given.fork + " and what it has settled are forgotten. " + given.group + " goes on as it is.",
    request: (given) => remove(path`/groups/${given.group}/fork/${given.fork}`), cli: (given) => ["group", "delete", given.fork, "--yes"], done: () => ["It is gone."] },
  schema: { title: "Register a schema", go: "Register", fields: [["subject", "Subject, such as orders-value"], ["type", "AVRO, JSON or PROTOBUF", "AVRO"], ["schema", "Schema", "text"]], begin: ({ first }) => first,
    try: "Only check", test: (given) => ({ method: "POST", at: path`/compatibility/subjects/${given.subject}/versions`, query: { verbose: "true" }, body: schema(given) }), dry: checked,
    request: (given) => post(path`/subjects/${given.subject}/versions`, schema(given)), cli: (given) => ["schema", "register", given.subject, "--type", given.type, "-f", "FILE"],
    done: (told, given) => ["It is version " + told.version + ".", ["schemas", given.subject]] },
  compatibility: { title: "How new versions must fit", go: "Set", fields: [["level", "BACKWARD, FORWARD, FULL, each with _TRANSITIVE if you like, or NONE"]],
    request: (given) => put(path`/config/${given.subject}`, { compatibility: given.level }), cli: (given) => ["schema", "config", given.subject, "--set", given.level] },
};

function gone(told) { return plural(told.results.reduce((sum, each) => sum + each.records_removed, 0), "message"); }

function settled(group, ranges) {
  return ranges.length ? "only " + group + " has settled " + ranges.map(([first, last]) => (first === last ? first : first + "–" + last)).join(", ") + ". " : "";
}
