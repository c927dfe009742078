/** As much of a browser as the modules of the console need to be asked what they do: no layout, and time and answers
 * are given by the test. */

class Part {
  constructor() { this.childNodes = []; this.parentNode = null; this.listeners = []; }

  addEventListener(kind, call, { once, signal } = {}) {
    const listener = { kind, call, once };
    this.listeners.push(listener);
    signal?.addEventListener("abort", () => this.forget(listener));
  }

  forget(listener) { this.listeners = this.listeners.filter((each) => each !== listener); }

  dispatchEvent(event) {
    for (const each of this.listeners.filter((one) => one.kind === event.type)) {
      if (each.once) this.forget(each);
      each.call.call(this, event);
    }
  }

  get children() { return this.childNodes.filter((each) => each instanceof Element); }
  get firstChild() { return this.childNodes[0] || null; }
  get lastChild() { return this.childNodes.at(-1) || null; }
  get firstElementChild() { return this.children[0] || null; }
  get nextElementSibling() { const all = this.parentNode.children; return all[all.indexOf(this) + 1] || null; }

  remove() {
    if (!this.parentNode) return;
    this.parentNode.childNodes.splice(this.parentNode.childNodes.indexOf(this), 1);
    this.parentNode = null;
    if (this.contains(document.activeElement)) document.activeElement = document.body;
  }

  append(...all) { for (const each of all) this.insertBefore(each, null); }

  insertBefore(what, at) {
    const part = what instanceof Part ? what : new Text(String(what));
    part.remove();
    this.childNodes.splice(at ? this.childNodes.indexOf(at) : this.childNodes.length, 0, part);
    part.parentNode = this;
  }

  replaceChildren(...all) {
    for (const each of [...this.childNodes]) each.remove();
    this.append(...all);
  }

  contains(other) {
    for (; other; other = other.parentNode) if (other === this) return true;
    return false;
  }

  get textContent() { return this.childNodes.map((each) => each.textContent).join(""); }
  set textContent(text) { this.replaceChildren(...(text === "" ? [] : [text])); }
}

class Text extends Part {
  constructor(data) { super(); this.data = data; }
  get textContent() { return this.data; }
}

export class Element extends Part {
  constructor(tag) {
    super();
    Object.assign(this, { tagName: tag.toUpperCase(), dataset: {}, style: {}, attributes: {}, hidden: false, disabled: false, value: "", className: "", title: "",
      href: "", required: false, ariaLabel: null, ariaPressed: null, tabIndex: -1, type: "", placeholder: "", dateTime: "", open: false });
  }

  setAttribute(name, value) { this.attributes[name] = value; }
  removeAttribute(name) { delete this.attributes[name]; }
  focus() { document.activeElement = this; }
  scrollIntoView() {}
  showModal() { this.open = true; }
  close() { this.open = false; this.dispatchEvent({ type: "close" }); }
  click() { this.dispatchEvent({ type: "click", target: this }); }
  all() { return [this, ...this.children.flatMap((each) => each.all())]; }

  querySelectorAll(selector) {
    const last = selector.split(" ").at(-1);
    const fits = (each) => (last.startsWith(".") ? each.className.includes(last.slice(1)) : each.tagName === last.split(/[:[]/)[0].toUpperCase());
    return this.all().slice(1).filter(fits);
  }

  querySelector(selector) { return this.querySelectorAll(selector)[0] || null; }
  button(words) { return this.all().find((each) => each.tagName === "BUTTON" && each.textContent === words); }
}

const page = new Element("document");
Object.assign(page, { body: new Element("body"), hidden: false, createElement: (tag) => new Element(tag), createElementNS: (_, tag) => new Element(tag) });
page.append(page.body);
page.activeElement = page.body;
Object.assign(globalThis, { document: page, Node: Part, location: { pathname: "/console/", hash: "", origin: "http://localhost:8080" }, dispatchEvent: () => {},
  ResizeObserver: class { observe() {} disconnect() {} } });
Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
AbortSignal.timeout = () => new AbortController().signal;

/** Requests, in their order; `say` answers one. */
export const asked = [];
globalThis.fetch = (url, { method, body, signal }) => new Promise((done, fail) => {
  const say = async (told, status = 200) => {
    done({ ok: status < 300, status, statusText: "", json: async () => told, headers: new Map() });
    await turn();
  };
  signal.addEventListener("abort", () => fail(new Error("aborted")));
  asked.push({ url, method, body: body && JSON.parse(body), say, lose: () => { fail(new Error("lost")); return turn(); } });
});

export const streams = [];
globalThis.EventSource = class extends Part {
  static CLOSED = 2;
  constructor(url) { super(); this.url = url; this.readyState = 0; streams.push(this); }
  close() { this.readyState = 2; }
};

/** What happens by itself, without any time. */
export async function turn() { for (let at = 0; at < 20; at++) await new Promise((done) => setImmediate(done)); }

const timers = new Map();
let last = 0;
globalThis.setTimeout = (call) => { timers.set(++last, call); return last; };
globalThis.clearTimeout = (number) => timers.delete(number);
export const waiting = () => timers.size;

/** All timers go off that are there now. */
export async function pass() {
  const due = [...timers.values()];
  timers.clear();
  for (const call of due) call();
  await turn();
}

export function hide(is) {
  document.hidden = is;
  document.dispatchEvent({ type: "visibilitychange" });
}
