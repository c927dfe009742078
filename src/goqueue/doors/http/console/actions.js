/** What can be changed here. Each action shows the request that it sends, as curl and as a command, before it is sent. */
import { button, el, hash, plural, say } from "./dom.js";
import { ask, command, curl, patch, path, post, remove } from "./api.js";
import { MORE } from "./actions_more.js";

/** A field: its name, its label, and what it begins with; `text`: of several lines; `?`: it may be left empty. */
const ACTIONS = {
  "create-topic": { title: "New topic", fields: [["name", "Name"], ["partitions", "Partitions?", "3"]], go: "Make it",
    request: (given) => post("/topics", { name: given.name, num_partitions: whole(given.partitions) }),
    cli: (given) => ["topic", "create", given.name, ...(given.partitions ? ["-p", given.partitions] : [])], done: (told) => [told.name + " is there.", ["topics", told.name]] },
  publish: { title: "Publish a message", go: "Publish", fields: [["key", "Key?"], ["value", "Value", "text"], ["headers", "Headers, a line each: name: value?", "text"],
    ["priority", "Priority?", "normal"], ["delay", "Delay? (30s, 2 h)"], ["ttl", "Time to live?"]],
  begin: ({ message }) => message && { key: message.key || "", value: message.value || "", priority: message.priority,
    headers: Object.entries(message.headers || {}).map(([name, value]) => name + ": " + (value ?? "")).join("\n") },
  request: (given) => post(path`/topics/${given.topic}/messages`, { messages: [wish(given)] }),
  cli: (given) => ["produce", given.topic, "-m", given.value, ...["key", "priority", "delay", "ttl"].flatMap((each) => (given[each] ? ["--" + each, given[each]] : []))],
  done: (told, given) => { const [one] = told.results; return one.error ? [one.error] : ["It is " + given.topic + "/" + one.partition + "/" + one.offset + ".", ["topics", given.topic, one.partition, one.offset]]; } },
  options: { title: "Set an option", go: "Set", fields: [["name", "Option, such as lease.ms"], ["value", "Value; empty: back to the default?"]],
    request: (given) => patch(path`/topics/${given.topic}`, { options: { [given.name]: given.value || null } }),
    cli: (given) => ["topic", "alter", given.topic, ...(given.value ? ["--set", given.name + "=" + given.value] : ["--unset", given.name])] },
  "delete-topic": { title: "Delete the topic and all that is in it", danger: true, go: "Delete", fields: [["again", "Its name once more"]],
    check: (given) => given.again === given.topic || "That is not its name.",
    request: (given) => remove(path`/topics/${given.topic}`), cli: (given) => ["topic", "delete", given.topic, "--force"],
    done: () => ["It is gone.", ["topics"]] },
  release: { title: "Release the lease", go: "Release", fields: [], ...place("release"), words: (given) => "Whoever holds " + spot(given) +
    " in " + given.group + " loses it, and it goes to the next consumer at once. That counts as an attempt." },
  settle: { title: "Acknowledge by hand", go: "Acknowledge", fields: [], ...place("ack"), words: (given) => spot(given) +
    " is done, as far as " + given.group + " is concerned: it will not be delivered to it any more." },
  redrive: { title: "Send dead letters back to work", go: "Redrive", fields: [["reason", "Only those that died so? (attempts, rejected, expired)"],
    ["contains", "Only those whose value holds?"], ["rate", "At most so many a second?"]],
  request: (given) => post(path`/topics/${given.topic}/dlq/redrive`, { filter: picked(given, "reason", "contains"),
    ...(given.places && { places: given.places }), rate: whole(given.rate) }),
  cli: (given) => ["dlq", "redrive", given.topic, ...(given.places || []).flatMap((each) => ["--place", each]), ...["reason", "contains", "rate"].flatMap((each) => (given[each] ? ["--" + each, given[each]] : []))],
  words: (given) => (given.places ? plural(given.places.length, "chosen dead letter") : "All that match") + " go back to where they came from.",
  dry: (told) => [plural(told.redriven, "message") + " would go back; " + told.filtered_out + " do not match, " + told.looping + " came back too often."],
  done: (told) => [told.state + ": " + plural(told.redriven, "message") + " sent back, " + told.failed + " failed" + (told.looping ? ", " + told.looping + " left, which came back too often" : "") + ". " + told.errors.join("; ")] },
  discard: { title: "Discard the dead letter", danger: true, go: "Discard", fields: [], words: (given) => "It is not listed and not redriven any more.",
    request: (given) => remove(path`/topics/${given.topic}/dlq/${given.partition}/${given.offset}`), cli: (given) => ["dlq", "discard", given.topic, given.partition + "/" + given.offset] },
  cancel: { title: "Cancel the message", danger: true, go: "Never publish it", fields: [], words: (given) => spot(given) + " will never be published.",
    request: (given) => remove(path`/topics/${given.topic}/delayed/${given.partition}/${given.offset}`),
    cli: (given) => ["delay", "cancel", given.topic, given.partition + "/" + given.offset] },
  move: { title: "Let it come at another time", go: "Move", fields: [["delay", "So long from now", "1s"]],
    request: (given) => patch(path`/topics/${given.topic}/delayed/${given.partition}/${given.offset}`, { delay: given.delay }),
    cli: (given) => ["delay", "reschedule", given.topic, given.partition + "/" + given.offset, "--delay", given.delay], done: (told) => ["It comes at " + told.deliver_at + "."] },
  run: { title: "Run the schedule now", go: "Run", fields: [], words: (given) => given.name + " publishes its message once, now. Its times stay as they are.",
    request: (given) => post(path`/schedules/${given.name}/run`), cli: (given) => ["schedule", "run", given.name],
    done: (told) => ["It is " + spot(told) + ".", ["topics", told.topic, told.partition, told.offset]] },
  seek: { title: "Let the group go on from elsewhere", go: "Seek", fields: [["topic", "Topic"], ["to", "To: earliest, latest, an offset, or a time (-1h)", "-1h"]],
    request: (given) => post(path`/groups/${given.group}/seek`, { topic: given.topic, to: /^\d+$/.test(given.to) ? Number(given.to) : given.to }),
    cli: (given) => ["group", "reset-offsets", given.group, "--topic", given.topic, ...(/^\d+$/.test(given.to) ? ["--to-offset", given.to]
      : ["earliest", "latest"].includes(given.to) ? ["--to-" + given.to] : ["--to-time", given.to])],
    begin: ({ topics }) => ({ topic: topics?.[0] || "" }), dry: (told) => [moved(told, "would be")], done: (told) => [moved(told, "are")] },
};

export function spot(given) { return given.topic + "/" + given.partition + "/" + given.offset; }

export function picked(given, ...names) { return Object.fromEntries(names.filter((each) => given[each]).map((each) => [each, given[each]])); }

export function place(action) {
  return { request: (given) => post(path`/groups/${given.group}/settle`, { topic: given.topic, partition: given.partition, offset: given.offset, action }),
    cli: (given) => ["group", "settle", given.group, given.topic, given.partition + "/" + given.offset, action] };
}

function moved(told, are) {
  const ways = told.partitions.map((each) => each.after - Math.max(0, each.before));
  const again = -ways.filter((each) => each < 0).reduce((sum, each) => sum + each, 0), left = ways.filter((each) => each > 0).reduce((sum, each) => sum + each, 0);
  return plural(again, "message") + " " + are + " delivered again, and " + plural(left, "message") + " left out.";
}

/** What is no number is sent as it is, so that it is refused. */
export function whole(text) { return text === "" ? 0 : /^\d+$/.test(text) ? Number(text) : text; }

/** What was no text, and so was not shown, stays as it was unless something is written in its place. */
function wish(given) {
  const was = given.message || {}, binary = was.headers_base64 || {};
  const headers = Object.fromEntries(given.headers.split("\n").filter(Boolean).map((line) => {
    const [name, ...rest] = line.split(":"), text = rest.join(":").trim();
    return [name.trim(), text || (was.headers?.[name.trim()] === null ? null : "")];
  }));
  const kept = Object.entries(binary).filter(([name]) => headers[name] === null);
  return { value: given.value || (was.value === null ? null : ""), ...picked(given, "key", "priority", "delay", "ttl"),
    ...(given.value ? {} : picked(was, "value_base64")), ...(given.key ? {} : picked(was, "key_base64")),
    ...(Object.keys(headers).length && { headers }), ...(kept.length && { headers_base64: Object.fromEntries(kept) }) };
}

function input([, label, first = ""]) {
  const control = first === "text" ? el("textarea") : el("input", { value: first });
  control.required = !label.includes("?") && first !== "text";
  return control;
}

/** Ask for what is missing, show what is sent, send it, and say what came of it. */
export function act(name, known = {}, then) {
  const action = ACTIONS[name] || MORE[name], controls = new Map(action.fields.map((field) => [field[0], input(field)]));
  for (const [field, value] of Object.entries(action.begin?.(known) || {})) controls.get(field).value = value;
  const sent = el("pre", { className: "sent" }), result = el("div", { role: "status" }), wrong = el("p", { className: "wrong", role: "alert" });
  const values = () => ({ ...known, ...Object.fromEntries([...controls].map(([field, each]) => [field, each.value])) });
  const show = () => { const given = values(); say(sent, curl(action.request(given)) + "\n\n" + command(...action.cli(given))); };
  let busy = false, done = false;
  const send = async (isDry) => {
    if (busy || done) return;
    const given = values(), refusal = action.check?.(given), wanted = action.request(given);
    const { method, at, query, body } = isDry ? action.test?.(given) || { ...wanted, body: { ...wanted.body, dry_run: true } } : wanted;
    say(wrong, typeof refusal === "string" ? refusal : "");
    if (typeof refusal === "string") return;
    busy = go.disabled = true;
    try {
      const told = await ask(method, at, { query, body });
      const [words, to] = (isDry ? action.dry(told, given) : action.done?.(told, given)) || ["Done."];
      result.replaceChildren(el("p", {}, words + " ", to && el("a", { href: hash(...to.map(String)), textContent: "Look at it", onclick: () => dialog.close() })));
      if (!isDry) { done = go.hidden = true; say(cancel, "Close"); then?.(told); cancel.focus(); }
    } catch (error) { say(wrong, error.message); }
    busy = go.disabled = false;
  };
  const go = el("button", { className: action.danger ? "danger" : "primary", textContent: action.go });
  const cancel = button("Cancel", () => dialog.close());
  const dialog = el("dialog", { ariaLabel: action.title, onclose: () => dialog.remove() }, el("form", { oninput: show,
    onsubmit: (event) => { event.preventDefault(); send(false); } }, el("h2", { textContent: action.title }),
  action.words && el("p", { textContent: action.words(known) }),
  action.fields.map((field) => el("label", {}, field[1].replace("?", " (if any)"), controls.get(field[0]))),
  el("details", {}, el("summary", { textContent: "As a request and as a command" }), sent), wrong, result,
  el("span", { className: "actions" }, go, action.dry && button(action.try || "Only count", () => send(true)), cancel)));
  show();
  document.body.append(dialog);
  dialog.showModal();
}
