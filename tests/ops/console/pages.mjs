/** What the modules of the console do where a browser is too slow, or too exact, to be asked: answers that overtake each
 * other, buttons that are pressed twice, pages that nobody sees. Told with `node --test`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { asked, Element, hide, pass, streams, turn, waiting } from "./browser.mjs";

const load = (name) => import(pathToFileURL(process.env.CONSOLE + "/" + name + ".js").href);
const [dom, reading, { act }] = [await load("dom"), await load("live"), await load("actions")];
const { live, current, start, stop } = reading;

const last = (words) => asked.findLast((each) => each.url.includes(words));
const dialog = () => document.body.querySelectorAll("dialog").at(-1);
const send = () => { dialog().querySelector("form").dispatchEvent({ type: "submit", preventDefault() {} }); return turn(); };
const shown = (screen) => { document.body.append(screen.node); screen.update?.(); return turn(); };
const begin = () => { stop(); asked.length = streams.length = 0; document.body.replaceChildren(); };

const row = (published, more) => ({ partitions: 1, messages: published, published, size_bytes: 0, delivered: 0, delayed: 0, dead: 0, paused: false, ...more });
const part = (cursor, topics, whole = false) => ({ cursor, at: cursor, whole, topics, groups: {}, gone_topics: [], gone_groups: [] });
const tell = (nodes) => last("/reading").say({ version: "1", cluster_id: "c", node_id: 1, console: "on", nodes });
const knownTopic = (name, more) => live.topics.set(name, { name, row: row(1, more), rates: { in: [], out: [] } });

test("rows that stay are not moved when others go, and one that is moved keeps the focus", () => {
  const list = new Element("ul"), make = (name) => Object.assign(new Element("li"), { id: name });
  document.body.append(list);
  dom.keyed(list, ["a", "b", "c"], (each) => each, make);
  list.children[1].focus();
  const moved = [], insert = list.insertBefore;
  list.insertBefore = function note(row, at) { moved.push(row.id); insert.call(this, row, at); };
  dom.keyed(list, ["b", "c"], (each) => each, make);
  assert.deepEqual(moved, []);
  dom.keyed(list, ["c", "b", "d"], (each) => each, make);
  assert.deepEqual(list.children.map((each) => each.id), ["c", "b", "d"]);
  assert.equal(document.activeElement.id, "b");
});

test("a time that is none is told as it is", () => assert.equal(dom.moment("+292278994-08-17T07:12:55.807Z!").textContent, "+292278994-08-17T07:12:55.807Z!"));

test("work that is asked for while it goes on is done once more, with what was asked for last", async () => {
  const begun = [];
  let end;
  const work = dom.single(async (what) => { begun.push(what); await new Promise((done) => { end = done; }); });
  for (const each of [1, 2, 3]) work(each);
  assert.deepEqual(begun, [1]);
  end();
  await turn();
  assert.deepEqual(begun, [1, 3]);
  end();
});

test("a rate is that between two readings, and two answers of one reading change nothing", async () => {
  begin();
  start();
  await tell({ 1: part(1000, { a: row(10) }, true) });
  await pass();
  await tell({ 1: part(3000, { a: row(50) }) });
  assert.equal(current(live.topics.get("a"), "in"), 20);
  const { tick } = live;
  await pass();
  await tell({ 1: part(3000, {}) });
  assert.deepEqual([live.tick, current(live.topics.get("a"), "in")], [tick, 20]);
});

test("what a node has told that answers no more does not count beside what its followers tell", async () => {
  begin();
  start();
  await tell({ 1: part(1000, { a: row(10) }, true), 2: part(1000, { a: row(500) }, true) });
  assert.equal(live.topics.get("a").row.published, 510);
  await pass();
  await tell({ 1: part(2000, {}) });
  assert.equal(live.topics.get("a").row.published, 10);
  await pass();
  await tell({ 1: part(3000, {}), 2: part(9000, { a: row(500) }, true) });
  assert.deepEqual([live.topics.get("a").row.published, current(live.topics.get("a"), "in")], [510, 0]);
});

test("only one asks, also if it is begun again while it asks", async () => {
  begin();
  start();
  start();
  await turn();
  assert.equal(live.state === "refused" || live.state === "lost", false);
  await tell({ 1: part(20_000, {}) });
  assert.deepEqual([live.state, waiting()], ["live", 1]);
});

test("a refusal is told with its reason, and asked again", async () => {
  begin();
  start();
  await last("/reading").say({ error: "the tenant 'acme' is suspended: unpaid", code: "X" }, 403);
  assert.deepEqual([live.state, live.error, waiting()], ["refused", "the tenant 'acme' is suspended: unpaid", 1]);
});

test("an action is sent once, however often somebody presses", async () => {
  begin();
  act("create-topic", {});
  dialog().querySelector("input").value = "x";
  await send();
  await send();
  assert.equal(asked.length, 1);
  await asked[0].say({ name: "x" });
  await send();
  assert.equal(asked.length, 1, "it is done");
});

test("to count while it is sent does nothing, and what was lost may be sent again", async () => {
  begin();
  act("redrive", { topic: "t" });
  await send();
  dialog().button("Only count").click();
  await turn();
  assert.equal(asked.length, 1);
  await asked[0].lose();
  await send();
  assert.equal(asked.length, 2);
});

test("what is no number is not taken for no limit", async () => {
  begin();
  act("redrive", { topic: "t" });
  dialog().querySelectorAll("input")[2].value = "1O";
  await send();
  assert.equal(asked[0].body.rate, "1O");
});

test("a message that is published again keeps what is no text", async () => {
  begin();
  const message = { value: null, value_base64: "/w==", key: null, key_base64: "/g==", headers: { a: "1", b: null, c: null }, headers_base64: { c: "/Q==" }, priority: "normal" };
  act("publish", { topic: "t", message });
  await send();
  const { key, ...rest } = message;
  assert.deepEqual(asked[0].body.messages, [rest], "a key that is no text goes as key_base64 alone");
  dialog().close();
  act("publish", { topic: "t", message });
  dialog().querySelector("textarea").value = "edited";
  await send();
  assert.deepEqual(asked[1].body.messages[0].value, "edited");
  assert.equal("value_base64" in asked[1].body.messages[0], false);
});

test("forks of a group are listed as text, with what can be done", async () => {
  begin();
  const { group } = await load("group");
  live.groups.set("g", { name: "g", type: "share", state: "Empty", members: 0, paused: false, topics: new Map(), rates: { out: [] }, row: { ready: 0, in_flight: 0, waiting: 0 } });
  const screen = group(["g"]);
  await shown(screen);
  const card = screen.node.all().find((each) => each.tagName === "SECTION" && each.textContent.startsWith("Forks"));
  assert.equal(card.hidden, true);
  await last("/forks").say({ group: "g", forks: [{ fork: "<b>f", only_group: 1, only_fork: 2 }], next: null });
  assert.equal(card.hidden, false);
  assert.ok(card.textContent.includes("<b>f"));
  card.button("Compare").click();
  await send();
  assert.ok(last("/compare").url.endsWith("/groups/g/compare?with=%3Cb%3Ef"));
  dialog().close();
  card.button("Promote").click();
  await send();
  assert.deepEqual(last("/promote").body, { fork: "<b>f" });
  dialog().close();
  card.button("Delete").click();
  assert.ok(dialog().textContent.includes("goqueue group delete '<b>f' --yes"));
  await send();
  const { method, url, say } = asked.at(-1);
  assert.deepEqual([method, url], ["DELETE", "/groups/g/fork/%3Cb%3Ef"]);
  await say({ deleted: true });
  await last("/forks").say({ group: "g", forks: [], next: null });
  assert.equal(card.hidden, true);
  screen.close();
});

test("a lease that is held longer shows until when", () => {
  const until = dom.timed((each) => each.at), first = until({ at: "2026-01-01T00:00:00Z" }, null);
  assert.equal(until({ at: "2026-01-01T00:00:00Z" }, first), first);
  assert.notEqual(until({ at: "2026-01-01T01:00:00Z" }, first), first);
});

test("a redrive is not watched while nobody sees the page", async () => {
  begin();
  const { dead } = await load("dead");
  knownTopic("t.dlq", { dead: 1 });
  const screen = dead(["t.dlq"]);
  await shown(screen);
  await last("/redrive").say({ state: "running", redriven: 1 });
  document.hidden = true;
  asked.length = 0;
  await pass();
  await pass();
  assert.equal(asked.length, 0);
  document.hidden = false;
  await pass();
  assert.equal(asked.length, 1);
  screen.close();
});

test("a dead letter that somebody looks at stays when others come, and goes when it is gone", async () => {
  begin();
  const { dead } = await load("dead");
  const letter = (offset) => ({ partition: 0, offset, original_topic: "t", original_partition: 0, original_offset: offset, reason: "x", headers: {}, value: "value-" + offset, attempts: 1 });
  const screen = dead(["t.dlq"]);
  const come = async (...offsets) => {
    knownTopic("t.dlq", { dead: offsets.length });
    await shown(screen);
    await last("limit=100").say({ messages: offsets.map(letter) });
  };
  await come(1, 2);
  screen.node.button("Look").click();
  await come(1, 2, 3);
  assert.ok(screen.node.textContent.includes("value-1"));
  await come(2, 3, 4, 5);
  assert.equal(screen.node.textContent.includes("value-1"), false);
  screen.close();
});

test("what may not be seen of the cluster is asked for once", async () => {
  begin();
  const { cluster } = await load("cluster");
  const screen = cluster();
  for (let tick = 0; tick < 61; tick++) {
    screen.update();
    await turn();
    for (const each of asked.filter((one) => !one.told)) { each.told = true; await each.say(each.url.includes("/nodes") ? { nodes: [] } : { error: "no" }, each.url.includes("/nodes") ? 200 : 403); }
  }
  assert.equal(asked.filter((each) => each.url.includes("/admin/users")).length, 1);
  assert.ok(asked.filter((each) => each.url.includes("/cluster/nodes")).length > 10);
  screen.close();
});

test("delayed messages are asked for when something has changed, and not all the time", async () => {
  begin();
  const { time } = await load("time");
  live.topics.clear();
  knownTopic("t", { delayed: 2 });
  const screen = time();
  const see = async () => { await shown(screen); for (const each of asked.splice(0)) await each.say({ messages: [], schedules: [] }); await turn(); };
  await see();
  await see();
  asked.length = 0;
  for (let second = 0; second < 20; second++) await shown(screen);
  assert.equal(asked.length, 0);
  knownTopic("t", { delayed: 3 });
  await shown(screen);
  assert.equal(asked.length, 1);
  screen.close();
});

async function opened() {
  begin();
  live.topics.clear();
  knownTopic("t");
  const { topic } = await load("topic");
  const screen = topic(["t"]);
  await shown(screen);
  return screen;
}
const told = { partitions: 1, options: {}, partition_offsets: { 0: { earliest: 0, next: 1 } } };
const message = (offset) => ({ partition: 0, offset, timestamp: "2026-01-01T00:00:00Z", key: null, value: "value-" + offset, priority: "normal", headers: {} });

test("a topic that changes faster than its node answers is not asked for more and more", async () => {
  const screen = await opened();
  for (let second = 0; second < 10; second++) { knownTopic("t", { published: second + 5 }); await shown(screen); }
  assert.ok(asked.length <= 4, String(asked.length));
  screen.close();
});

test("a topic that may not be described says so", async () => {
  const screen = await opened();
  for (const each of asked.splice(0)) await each.say({ error: "DESCRIBE is not allowed on topic 't'" }, 403);
  assert.ok(screen.node.textContent.includes("DESCRIBE is not allowed"));
  screen.close();
});

test("messages that were asked for before somebody began to follow do not come later", async () => {
  const screen = await opened();
  for (const each of asked.splice(0)) await each.say(each.url.endsWith("/partitions") ? { partitions: [] } : told);
  const late = asked.find((each) => each.url.includes("/topics/t"));
  screen.node.button("Follow").click();
  assert.equal(streams.length, 1);
  await late.say(told);
  for (const each of asked.filter((one) => one.url.includes("/messages"))) await each.say({ messages: [message(0)] });
  assert.equal(screen.node.textContent.includes("value-0"), false);
  screen.close();
});

test("a page that nobody sees follows nothing, and goes on when it is seen", async () => {
  const screen = await opened();
  screen.node.button("Follow").click();
  const [first] = streams;
  first.dispatchEvent({ type: "message", data: JSON.stringify(message(1)) });
  await pass();
  hide(true);
  assert.equal(first.readyState, 2);
  hide(false);
  assert.equal(streams.length, 2);
  assert.ok(screen.node.textContent.includes("value-1"), "what was seen is still there");
  screen.close();
  hide(true);
  hide(false);
  assert.deepEqual([streams.length, streams[1].readyState], [2, 2]);
});

test("a stream that the node has ended is told as ended", async () => {
  const screen = await opened();
  screen.node.button("Follow").click();
  streams[0].readyState = 2;
  streams[0].dispatchEvent({ type: "error" });
  assert.ok(screen.node.textContent.includes("The node has ended the stream."));
  assert.ok(screen.node.button("Follow"));
  screen.close();
});

test("all screens load, and more than five hundred groups are to be seen", async () => {
  for (const name of ["home", "topics", "message", "schemas", "palette"]) await load(name);
  const { groups } = await load("groups");
  for (let at = 0; at < 700; at++) live.groups.set("g" + at, { name: "g" + at, type: "share", state: "Empty", members: 0, topics: new Map(), rates: { out: [] }, row: { ready: 0, in_flight: 0, waiting: 0, lag: 0 } });
  const screen = groups();
  await shown(screen);
  assert.equal(screen.node.querySelectorAll("tr").length, 501);
  screen.node.button("Show more").click();
  assert.ok(screen.node.querySelectorAll("tr").length > 700);
});
