/** The frame of all screens: navigation, themes, signing in, the state of the connection, and the way to a screen. */
import { button, chip, el, empty, hash, head, say } from "./dom.js";
import { BASE, Refused, signIn, signOut, who } from "./api.js";
import { live, start, stop, watch } from "./live.js";

const NAVIGATION = [["Home", ""], ["Topics", "topics"], ["Groups", "groups"], ["Dead letters", "dead"], ["Time", "time"], ["Schemas", "schemas"], ["Cluster", "cluster"]];
const THEMES = ["auto", "light", "dark"];
/** By the first word of the address: the module, by how many words follow. A screen is fetched when it is first shown,
 * or when the page has nothing else to do. */
const SCREENS = { "": ["home"], topics: ["topics", "topic", "topic", "message"], groups: ["groups", "group"], dead: ["dead"],
  time: ["time"], schemas: ["schemas"], cluster: ["cluster"] };
const WORDS = { starting: "connecting", live: "live", lost: "lost: trying again", paused: "paused", refused: "refused" };

const main = el("main", { id: "main", tabIndex: -1 });
const pill = el("span", { className: "pill", role: "status" });
const lost = el("div", { className: "banner", role: "alert", hidden: true });
const LOST = "The node does not answer. What you see is what it said last; this page goes on by itself.";
const account = el("div", { className: "account" });
let shown = null, me = null, signing = false;

// -- themes

function theme(wanted) {
  let chosen = wanted || "auto";
  try {
    if (wanted) localStorage.setItem("goqueue.theme", wanted);
    chosen = localStorage.getItem("goqueue.theme") || "auto";
  } catch { /* a browser that keeps nothing */ }
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  return chosen;
}

function themes() {
  const choice = el("select", { ariaLabel: "Theme", onchange: () => theme(choice.value) },
    THEMES.map((each) => el("option", { value: each, textContent: "Theme: " + each })));
  choice.value = theme();
  return choice;
}

// -- the way to a screen

const palette = async () => (await import("./palette.js")).palette();

const where = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((each) => {
  try { return decodeURIComponent(each); } catch { return each; }
});

/** In a second, and not before somebody looks. */
const later = (call) => setTimeout(() => (document.hidden ? document.addEventListener("visibilitychange", call, { once: true }) : call()), 1000);

/** A browser does not fetch a module again that it could not fetch: once the node answers, the page begins anew. */
async function again(asked) {
  if (asked !== location.hash) return;
  try { await who(); location.reload(); } catch { later(() => again(asked)); }
}

function close() {
  for (const each of document.querySelectorAll("dialog")) each.close();
  shown?.close?.();
  shown = null;
}

async function show() {
  if (signing) return;
  const asked = location.hash;
  const [name = "", ...rest] = where();
  const found = Object.hasOwn(SCREENS, name) && (SCREENS[name][rest.length] || SCREENS[name].at(-1));
  let screen = missing;
  try { if (found) screen = (await import("./" + found + ".js"))[found]; }
  catch { later(() => again(asked)); return; }
  if (signing || asked !== location.hash) return;
  close();
  for (const each of document.querySelectorAll("nav a")) {
    if (each.dataset.name === name) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  shown = screen(rest);
  main.replaceChildren(shown.node);
  document.title = (shown.title || name || "Home") + " · GoQueue";
  if (live.tick) shown.update?.(live);
  main.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

const missing = () => ({ title: "Not found", node: el("div", {}, head("Not found"),
  empty("There is no such screen.", el("a", { href: "#/", textContent: "Home" }))) });

// -- who is here

function signedIn(told) {
  me = told;
  signing = false;
  const name = told.principal || "";
  const isPerson = Boolean(told.csrf_token);
  account.replaceChildren(el("span", { className: "dim", textContent: isPerson ? name.replace(/^User:/, "") : "open to all" }),
    ...(isPerson ? [button("Sign out", leave, "plain")] : []));
  start();
  show();
  (globalThis.requestIdleCallback || setTimeout)(async () => { for (const each of new Set([...Object.values(SCREENS).flat(), "palette"])) await import("./" + each + ".js").catch(() => {}); });
}

async function leave() {
  stop();
  try { await signOut(); } finally { await enter(); }
}

async function enter() {
  try {
    signedIn(await who());
  } catch (error) {
    if (error instanceof Refused && error.status === 401) await signInScreen();
    else { update(); later(enter); }
  }
}

async function signInScreen() {
  if (signing) return;
  signing = true;
  stop();
  close();
  account.replaceChildren();
  const user = el("input", { name: "user", autocomplete: "username", required: true });
  const password = el("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const wrong = el("p", { className: "wrong", role: "alert" });
  const go = el("button", { className: "primary", textContent: "Sign in" });
  const form = el("form", { className: "card sign-in", onsubmit: async (event) => {
    event.preventDefault();
    say(wrong, "");
    go.disabled = true;
    try { signedIn(await signIn(user.value, password.value)); }
    catch (error) { say(wrong, error.message); password.select(); }
    go.disabled = false;
  } }, el("h1", { textContent: "Sign in" }),
    el("label", {}, "User", user), el("label", {}, "Password", password), wrong, go,
    el("a", { className: "dim", href: BASE + "/session/oidc?to=" + encodeURIComponent(BASE + "/console/"),
      textContent: "Sign in at the identity provider" }));
  main.replaceChildren(form);
  lost.hidden = true;
  say(pill, "signed out");
  pill.className = "pill";
  user.focus();
}

// -- the frame

function update() {
  const state = live.state;
  say(pill, WORDS[state]);
  pill.className = "pill " + state;
  lost.hidden = !["lost", "refused"].includes(state);
  say(lost, state === "lost" ? LOST : live.error);
  document.body.classList.toggle("stale", state === "lost");
  document.body.classList.toggle("read-only", live.readOnly);
  say(document.getElementById("version"), live.version ? "GoQueue " + live.version : "");
  mode.hidden = !live.readOnly;
  if (live.state === "live") shown?.update?.(live);
}

const mode = chip("read only", "scheduled");
mode.hidden = true;

function frame() {
  const finder = el("button", { type: "button", className: "finder", onclick: palette, ariaKeyShortcuts: "Control+K" },
    el("span", { textContent: "Find a topic, a group, a message" }), el("kbd", { textContent: "Ctrl K" }));
  document.getElementById("shell").replaceChildren(
    el("aside", {}, el("a", { className: "brand", href: "#/" }, el("img", { src: "icon.svg", alt: "", width: 26, height: 26 }), "GoQueue"),
      el("nav", { ariaLabel: "Screens" }, NAVIGATION.map(([words, name]) => {
        const item = el("a", { href: hash(...(name ? [name] : [])), textContent: words });
        item.dataset.name = name;
        return item;
      })),
      el("footer", {}, account, themes(), el("a", { className: "dim", href: BASE + "/docs", textContent: "HTTP API" }),
        el("span", { className: "dim", id: "version" }))),
    el("div", { className: "column" }, el("div", { className: "bar" }, finder, mode, pill), lost, main));
}

theme();
frame();
watch(update);
addEventListener("hashchange", show);
addEventListener("signed-out", signInScreen);
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); palette(); }
});
update();
enter();
