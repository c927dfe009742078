/** Elements, keyed lists and words for numbers. What comes from a message or a name is set as text, and only as text. */

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && node.namespaceURI !== SVG && name !== "list") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return node;
}

/** @param {string} tag @param {object} [properties] @param {...any} children */
export const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const svg = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

/** Sets the text only if it is another one: a selection in it survives. */
export function say(node, text) {
  const words = String(text);
  if (node.textContent !== words) node.textContent = words;
}

const kept = new WeakMap();

/** Rows are updated and not replaced, so that focus and selection survive. `update(row, item)` after `make(item)`. */
export function keyed(parent, items, key, make, update) {
  if (!kept.has(parent)) kept.set(parent, new Map());
  const known = kept.get(parent), wanted = new Set([...items].map(key)), focused = document.activeElement;
  for (const [name, row] of known) if (!wanted.has(name)) { row.remove(); known.delete(name); }
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let row = known.get(name);
    if (!row) known.set(name, (row = make(item)));
    update?.(row, item);
    if (row === at) at = at.nextElementSibling;
    else parent.insertBefore(row, at);
  }
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** Of work that is asked for while it is under way: once more, when that is done. So answers come in the order of the
 * questions, and a slow node is not asked more and more. */
export function single(work) {
  let running = false, again = null;
  return async (...given) => {
    again = given;
    if (running) return;
    running = true;
    try { while (again) { const now = again; again = null; await work(...now); } } finally { running = false; }
  };
}

export const hash = (...words) => "#/" + words.map(encodeURIComponent).join("/");
export const link = (text, ...words) => el("a", { href: hash(...words), textContent: text });
export const chip = (text, kind) => el("span", { className: "chip " + (kind || ""), textContent: text });
export const button = (text, onclick, kind) =>
  el("button", { type: "button", className: kind || "", textContent: text, onclick });
export const head = (title, ...more) =>
  el("header", { className: "head" }, el("h1", { tabIndex: -1, textContent: title }), ...more);
export const card = (title, ...more) => el("section", { className: "card" }, title && el("h2", { textContent: title }), ...more);
export const empty = (text, ...more) => el("div", { className: "empty" }, el("p", { textContent: text }), ...more);

/** A table whose rows are updated. A column is its title (`#`: of numbers) and what it shows of an item: text, or a node
 * that is made once. */
export function grid(caption, key, columns) {
  const body = el("tbody");
  const kind = (title) => (title.startsWith("#") ? "number" : "");
  const node = el("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: caption, hidden: true }, el("table", {}, el("thead", {},
    el("tr", {}, columns.map(([title]) => el("th", { scope: "col", textContent: title.replace("#", ""), className: kind(title) })))), body));
  const draw = (items) => {
    keyed(body, items, key, () => el("tr", {}, columns.map(([title]) => el("td", { className: kind(title) }))), (row, item) =>
      columns.forEach(([, show], at) => {
        const cell = row.children[at], what = show(item, cell.firstChild);
        if (!(what instanceof Node)) say(cell, what ?? "");
        else if (what !== cell.firstChild) cell.replaceChildren(what);
      }));
    node.hidden = !items.length;
  };
  return { node, draw };
}

/** A column with a link, made once. */
export const linked = (text, to) => (item, known) => known || link(text(item), ...to(item).map(String));

// -- words for numbers

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => (value === null || value === undefined ? "–" : WHOLE.format(value));
export const short = (value) => (value < 10000 ? WHOLE.format(value) : SHORT.format(value));
export const plural = (count, one, many) => number(count) + " " + (count === 1 ? one : many || one + "s");

export function bytes(value) {
  let at = 0;
  for (; value >= 1024 && at < 4; at++) value /= 1024;
  return (at ? value.toFixed(value < 10 ? 1 : 0) : value) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][at];
}

export const rate = (value) => (value ? (value < 10 ? value.toFixed(1) : short(Math.round(value))) : "0") + "/s";

export function span(ms) {
  if (ms < 1) return "0 ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = ms / 1000;
  if (left < 10) return left.toFixed(1).replace(".0", "") + " s";
  const words = [];
  for (const [unit, size] of units) {
    const count = unit === "s" ? Math.round(left) : Math.floor(left / size);
    if (count || words.length) words.push(count + " " + unit);
    left -= count * size;
    if (words.length === 2) break;
  }
  return words.filter((each) => !each.startsWith("0 ")).join(" ");
}

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false };

/** A moment in the time of whoever looks; the whole of it is told by the title. */
export function moment(text, now = Date.now()) {
  const at = new Date(text);
  if (isNaN(at)) return el("time", { title: text, textContent: text });
  const far = Math.abs(now - at.getTime()) > 43200000;
  const words = far ? at.toLocaleString("sv") : at.toLocaleTimeString("en", CLOCK);
  return el("time", { dateTime: at.toISOString(), title: at.toISOString(), textContent: words });
}

/** A column with a moment, made anew if it is another one. */
export const timed = (of) => (item, known) => { const made = moment(of(item)); return known?.title === made.title ? known : made; };

export const ago = (text, now = Date.now()) => {
  const ms = now - new Date(text).getTime();
  return ms >= 0 ? span(ms) + " ago" : "in " + span(-ms);
};
