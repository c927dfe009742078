/** What a message holds, as text and never as markup: JSON in order, text as it is, bytes as hex. */
import { el } from "./dom.js";

const PREVIEW_MAX = 200;
const SHOWN_MAX = 200000;
const decode = (base64) => Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));

export function bytesOf(message, part = "value") {
  const packed = message[part + "_base64"];
  if (packed) return decode(packed);
  return message[part] === null || message[part] === undefined ? null : new TextEncoder().encode(message[part]);
}

export function preview(message) {
  const text = message.value_base64 ? decode(message.value_base64).length + " bytes" : message.value;
  if (text === null || text === undefined) return el("em", { className: "dim", textContent: "no value" });
  return el("span", { textContent: text.slice(0, PREVIEW_MAX) });
}

function hex(bytes) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, 16384); at += 16) {
    const some = [...bytes.slice(at, at + 16)];
    lines.push(at.toString(16).padStart(6, "0") + "  " + some.map((each) => each.toString(16).padStart(2, "0")).join(" ").padEnd(48) +
      " " + some.map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : "·")).join(""));
  }
  return lines.join("\n");
}

export function pretty(text) {
  try {
    const found = JSON.parse(text);
    return typeof found === "object" && found !== null ? JSON.stringify(found, null, 2) : text;
  } catch { return text; }
}

/** With a choice of how to see it. */
export function value(message) {
  const bytes = bytesOf(message);
  if (bytes === null) return el("p", { className: "dim", textContent: "This message has no value." });
  const ways = message.value_base64 ? [["hex", () => hex(bytes)]]
    : [["formatted", () => pretty(message.value)], ["as it is", () => message.value], ["hex", () => hex(bytes)]];
  const text = el("pre", { className: "value", tabIndex: 0, ariaLabel: "Value" });
  const show = (at) => {
    const words = ways[at][1]();
    text.textContent = words.length > SHOWN_MAX ? words.slice(0, SHOWN_MAX) + "\n… cut here" : words;
    choice.querySelectorAll("button").forEach((each, index) => each.setAttribute("aria-pressed", String(index === at)));
  };
  const choice = el("div", { className: "choice", role: "group", ariaLabel: "Show the value" },
    ways.map(([name], at) => el("button", { type: "button", textContent: name, onclick: () => show(at) })));
  show(0);
  return el("div", {}, choice, text);
}

export function facts(pairs) {
  return el("dl", { className: "facts" }, pairs.filter((each) => ![undefined, null, "", false].includes(each[1]))
    .flatMap(([name, what]) => [el("dt", { textContent: name }), el("dd", {}, what instanceof Node ? what : String(what))]));
}
