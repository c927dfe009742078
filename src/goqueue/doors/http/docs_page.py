"""The page at /docs: the OpenAPI document for people, with a button that sends. One file, nothing from elsewhere: a
broker often runs where no other server can be reached.

Its policy lets it run what is written here and ask the node it came from, and nothing else.
"""

from base64 import b64encode
from hashlib import sha256

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --dim: #5d6778; --paper: #fff; --box: #f5f6f8; --line: #d9dde4;
  --link: #1a56c4; --GET: #1a7f4b; --POST: #1a56c4; --PUT: #8a5a00; --PATCH: #7a3fb0; --DELETE: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ef; --dim: #9aa4b5; --paper: #12161d; --box: #1b212b;
  --line: #323a48; --link: #7db0ff; --GET: #57c98d; --POST: #7db0ff; --PUT: #e0b050; --PATCH: #c79bf0;
  --DELETE: #ff8f87; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 6rem; }
h1 { margin: 0; font-size: 1.5rem; } h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
h3 { margin: .8rem 0 0; font-size: .95rem; }
a { color: var(--link); } p { margin: .4rem 0; white-space: pre-line; } .dim { color: var(--dim); }
nav { display: flex; flex-wrap: wrap; gap: .25rem .9rem; margin-top: .8rem; }
input, textarea, button { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line);
  border-radius: 4px; padding: .3rem .5rem; }
#find { width: 100%; margin-top: 1rem; }
code, pre, textarea, .path { font: 13px/1.5 ui-monospace, monospace; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .35rem 0; background: var(--box); }
summary { display: flex; gap: .7rem; align-items: baseline; padding: .4rem .7rem; cursor: pointer; list-style: none; }
summary .path { flex: none; max-width: 60%; overflow-wrap: anywhere; }
summary .dim { margin-left: auto; text-align: right; }
.method { min-width: 3.8rem; font-weight: 700; font-size: .8rem; }
.inside { padding: .2rem .8rem .8rem; border-top: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; }
td { padding: .25rem .6rem .25rem 0; vertical-align: top; } td:first-child { white-space: nowrap; }
td input { width: 100%; min-width: 9rem; }
textarea { width: 100%; min-height: 8rem; resize: vertical; tab-size: 2; }
button { cursor: pointer; border-color: var(--link); color: var(--link); padding: .3rem 1.1rem; margin-right: .5rem; }
pre { background: var(--paper); border: 1px solid var(--line); border-radius: 4px; padding: .6rem; overflow: auto;
  max-height: 26rem; margin: .5rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
[hidden] { display: none; }
"""

SCRIPT = """
"use strict";
const SHOWN_MAX = 200000;
const base = location.pathname.replace(/\\/docs\\/?$/, "");
let schemas = {};

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function resolve(schema) {
  return schema && schema.$ref ? schemas[schema.$ref.split("/").pop()] : schema || {};
}

function kind(schema) {
  if (schema && schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" or ");
  if (schema.type === "array") return "list of " + kind(schema.items || {});
  if (schema.type === "object" && typeof schema.additionalProperties === "object")
    return "object of " + kind(schema.additionalProperties);
  return schema.type || "anything";
}

function limits(schema) {
  const said = [];
  if (schema.minimum !== undefined) said.push("from " + schema.minimum);
  if (schema.maximum !== undefined) said.push("to " + schema.maximum);
  if (schema.default !== undefined && schema.default !== null) said.push("default " + JSON.stringify(schema.default));
  return said.length ? " (" + said.join(", ") + ")" : "";
}

function example(schema, depth) {
  const given = schema && schema.examples;
  const found = resolve(schema);
  if (given) return given[0];
  if (found.examples) return found.examples[0];
  if (found.default !== undefined && found.default !== null) return found.default;
  if (found.enum) return found.enum[0];
  if (found.anyOf) return example(found.anyOf.find((each) => each.type !== "null"), depth);
  if (found.type === "array") return depth > 3 ? [] : [example(found.items || {}, depth + 1)];
  if (found.type === "object") return depth > 3 ? {} : exampleObject(found, depth);
  if (found.type === "integer" || found.type === "number") return Math.max(found.minimum || 0, 1);
  if (found.type === "boolean") return false;
  return found.type === "string" ? "text" : null;
}

function exampleObject(schema, depth) {
  const wanted = schema.required || [];
  const names = Object.keys(schema.properties || {});
  const chosen = wanted.length ? names.filter((name) => wanted.includes(name)) : names.slice(0, depth ? 2 : 3);
  return Object.fromEntries(chosen.map((name) => [name, example(schema.properties[name], depth + 1)]));
}

function rich(text) {
  return (text || "").split("`").map((part, at) => at % 2 ? make("code", { textContent: part }) : part);
}

function fields(schema, seen = new Set()) {
  const wanted = schema.required || [];
  const rows = Object.entries(schema.properties || {}).map(([name, each]) => make("tr", {},
    make("td", {}, make("code", { textContent: name }), wanted.includes(name) ? " *" : ""),
    make("td", { className: "dim", textContent: kind(each) + limits(each) }),
    make("td", {}, ...rich(each.description || resolve(each).description))));
  const inner = Object.values(schema.properties || {}).flatMap((each) => named(each, seen));
  return make("div", {}, make("table", {}, ...rows), ...inner);
}

function named(schema, seen) {
  const fresh = within(schema).filter((name) => !seen.has(name) && seen.add(name));
  return fresh.map((name) => make("div", {}, make("h3", { textContent: name }), fields(schemas[name], seen)));
}

function answers(operation) {
  const seen = new Set();
  return Object.entries(operation.responses).flatMap(([status, each]) => {
    const content = (each.content || {})["application/json"];
    const head = make("h3", {}, status + " ", ...rich(each.description), content ? ": " + kind(content.schema) : "");
    return [head, ...(content ? named(content.schema, seen) : [])];
  });
}

function within(schema) {
  if (schema.$ref) return [schema.$ref.split("/").pop()];
  return [...(schema.anyOf || []), schema.items, schema.additionalProperties].filter((each) => each).flatMap(within);
}

function parameterRow(parameter, inputs) {
  const schema = parameter.schema;
  const input = make("input", { placeholder: kind(schema) + limits(schema), ariaLabel: parameter.name });
  if (parameter.in === "path") input.value = schema.examples ? schema.examples[0] : "";
  inputs.push([parameter, input]);
  return make("tr", {}, make("td", {}, make("code", { textContent: parameter.name }), parameter.required ? " *" : ""),
    make("td", {}, input), make("td", {}, ...rich(parameter.description || schema.description)));
}

function addressOf(path, inputs) {
  const query = new URLSearchParams();
  for (const [parameter, input] of inputs) {
    if (parameter.in === "path") path = path.replace("{" + parameter.name + "}", encodeURIComponent(input.value));
    else if (input.value !== "") query.set(parameter.name, input.value);
  }
  return base + path + (query.size ? "?" + query : "");
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

async function proof() {
  const reply = await fetch(base + "/session");
  const token = reply.ok ? (await reply.json()).csrf_token : undefined;
  return token ? { "x-goqueue-csrf": token } : {};
}

async function send(method, address, body, answer, signal) {
  answer.hidden = false;
  answer.textContent = method + " " + address + " ...";
  const headers = method === "GET" ? {} : await proof().catch(() => ({}));
  const options = { method, signal, headers };
  if (body !== null) Object.assign(options, { body, headers: { ...headers, "content-type": "application/json" } });
  const started = performance.now();
  try {
    const reply = await fetch(address, options);
    const reader = reply.body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text = (text + decoder.decode(value, { stream: true })).slice(-SHOWN_MAX);
      answer.textContent = reply.status + " " + reply.statusText + "\\n\\n" + text;
    }
    const took = Math.round(performance.now() - started);
    answer.textContent = reply.status + " " + reply.statusText + ", " + took + " ms\\n\\n" + pretty(text);
  } catch (error) {
    if (error.name !== "AbortError") answer.textContent = String(error);
    else answer.textContent += "\\n(stopped)";
  }
}

function fill(inside, method, path, operation) {
  if (operation.description) inside.append(make("p", {}, ...rich(operation.description)));
  const needed = Object.entries(operation["x-permission"] || {});
  if (needed.length) inside.append(make("p", { className: "dim", textContent: "Needs the right to " +
    needed.map(([kind, each]) => each.join(", ") + " (" + kind + ")").join("; ") }));
  const inputs = [];
  if (operation.parameters)
    inside.append(make("table", {}, ...operation.parameters.map((each) => parameterRow(each, inputs))));
  const content = operation.requestBody && operation.requestBody.content["application/json"];
  const editor = content && make("textarea", { spellcheck: false, ariaLabel: "body" });
  if (editor) {
    editor.value = JSON.stringify(example(content.schema, 0), null, 2);
    inside.append(editor, fields(resolve(content.schema)));
  }
  const answer = make("pre", { hidden: true });
  let stopper = new AbortController();
  const go = make("button", { textContent: "Send" });
  const stop = make("button", { textContent: "Stop" });
  go.onclick = () => {
    stopper.abort();
    stopper = new AbortController();
    send(method, addressOf(path, inputs), editor ? editor.value : null, answer, stopper.signal);
  };
  stop.onclick = () => stopper.abort();
  inside.append(go, stop, answer, make("div", { className: "answers" }, ...answers(operation)));
}

function box(method, path, operation) {
  const name = make("span", { className: "method", textContent: method });
  name.style.color = "var(--" + method + ")";
  const head = make("summary", {}, name, make("span", { className: "path", textContent: path }),
    make("span", { className: "dim" }, ...rich(operation.summary)));
  const inside = make("div", { className: "inside" });
  const whole = make("details", { id: operation.operationId }, head, inside);
  whole.dataset.words = (method + " " + path + " " + operation.summary + " " + operation.operationId).toLowerCase();
  whole.ontoggle = () => { if (whole.open && !inside.hasChildNodes()) fill(inside, method, path, operation); };
  return whole;
}

function show(told) {
  schemas = told.components.schemas;
  document.getElementById("version").textContent = told.info.version;
  const list = document.getElementById("operations");
  const sections = new Map(told.tags.map((tag) => [tag.name, make("section", {}, make("h2", { textContent: tag.name,
    id: "tag-" + tag.name }))]));
  for (const [path, methods] of Object.entries(told.paths))
    for (const [method, operation] of Object.entries(methods))
      sections.get(operation.tags[0]).append(box(method.toUpperCase(), path, operation));
  list.replaceChildren(...sections.values());
  document.querySelector("nav").replaceChildren(...[...sections.keys()].map((name) =>
    make("a", { href: "#tag-" + name, textContent: name })));
  document.getElementById("find").oninput = (event) => {
    const words = event.target.value.toLowerCase().split(" ");
    for (const section of sections.values()) {
      let some = false;
      for (const each of section.querySelectorAll("details")) {
        each.hidden = !words.every((word) => each.dataset.words.includes(word));
        some = some || !each.hidden;
      }
      section.hidden = !some;
    }
  };
  const wanted = location.hash && document.getElementById(location.hash.slice(1));
  if (wanted) { wanted.open = true; wanted.scrollIntoView(); }
}

fetch(base + "/openapi.json").then((reply) => reply.json()).then(show).catch((error) => {
  document.getElementById("operations").textContent = "The document could not be read: " + error;
});
"""

PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GoQueue HTTP API</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>GoQueue <span class="dim" id="version"></span></h1>
<p class="dim">What this node does over HTTP. Also as <a href="openapi.json">OpenAPI</a> and as a
<a href="postman.json">Postman collection</a>.</p>
<nav></nav>
<input id="find" type="search" placeholder="Find an operation" aria-label="Find an operation">
<div id="operations">Reading the document ...</div>
</main>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_digest(SCRIPT)}",
        f"style-src {_digest(STYLE)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
