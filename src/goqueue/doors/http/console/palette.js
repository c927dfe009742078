/** Ctrl+K: names of topics and groups, `orders/0/17`, a trace id, or `orders key` for the latest message of a key. */
import { el, hash, keyed, say } from "./dom.js";
import { get, path } from "./api.js";
import { live, watch } from "./live.js";

const SHOWN_MAX = 12;
const TRACE = /^[0-9a-f]{32}$/;
const PLACE = /^([A-Za-z0-9._-]+)\/(\d+)\/(\d+)$/;

function found(text) {
  const some = [];
  const add = (kind, name, ...words) => some.push({ kind, name, to: words });
  const place = PLACE.exec(text);
  if (place) add("message", text, "topics", ...place.slice(1));
  if (TRACE.test(text)) some.push({ kind: "trace", name: text, trace: text });
  const [name, ...key] = text.split(" ");
  if (key.length && live.topics.has(name)) some.push({ kind: "latest of key", name: key.join(" "), topic: name, key: key.join(" ") });
  const low = text.toLowerCase();
  for (const [kind, at, names] of [["topic", "topics", live.topics.keys()], ["group", "groups", live.groups.keys()]])
    for (const each of names) if (some.length < SHOWN_MAX && each.toLowerCase().includes(low)) add(kind, each, at, each);
  return some;
}

async function go(item, say_) {
  try {
    if (item.trace) {
      const told = await get(path`/traces/${item.trace}`);
      item.to = ["topics", told.topic, told.partition, told.offset];
    } else if (item.key) {
      const told = await get(path`/topics/${item.topic}/why`, { key: item.key });
      item.to = ["topics", told.topic, told.partition, told.offset];
    }
  } catch (error) { say_(error.message); return false; }
  location.hash = hash(...item.to.map(String));
  return true;
}

export function palette() {
  if (document.querySelector("dialog.palette")) return;
  const list = el("ul", { role: "listbox", id: "found" });
  const wrong = el("p", { className: "wrong", role: "alert" });
  const input = el("input", { type: "search", placeholder: "orders, orders/0/17, a trace id, or a topic and a key", role: "combobox",
    ariaLabel: "Find", ariaExpanded: "true", "aria-controls": "found" });
  let items = [], at = 0;
  const dialog = el("dialog", { className: "palette", ariaLabel: "Find" }, input, wrong, list,
    el("p", { className: "dim", textContent: "↑ ↓ choose, Enter opens, Esc closes" }));
  const choose = async (item) => { if (item && await go(item, (words) => say(wrong, words))) dialog.close(); };
  const draw = () => {
    keyed(list, items, (each) => each.kind + " " + each.name, (each) => el("li", { role: "option", onclick: () => choose(each) },
      el("span", { className: "kind", textContent: each.kind }), el("span", { textContent: each.name })),
    (row, each) => row.setAttribute("aria-selected", String(items.indexOf(each) === at)));
  };
  input.addEventListener("input", () => { items = found(input.value.trim()); at = 0; say(wrong, ""); draw(); });
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) { at = (at + step + items.length) % items.length; event.preventDefault(); draw(); }
    if (event.key === "Enter") { event.preventDefault(); choose(items[at]); }
  });
  const end = watch(() => { items = found(input.value.trim()); at = Math.min(at, Math.max(0, items.length - 1)); draw(); });
  dialog.addEventListener("close", () => { end(); dialog.remove(); });
  document.body.append(dialog);
  items = found("");
  draw();
  dialog.showModal();
}
