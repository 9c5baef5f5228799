/**
 * Begins here. The shell that every view stands in: which view the address names, whether the server answers, what is
 * wrong. Views come and go; the shell, and what it asks the server every two seconds, stay.
 */

import { link, onLink, unanswered } from "./api.js";
import { announce, fill, h, setAttribute, setText } from "./dom.js";
import { lasting, tick } from "./format.js";
import { note } from "./notes.js";
import { everySecond, soon } from "./paint.js";
import { Poll } from "./poll.js";
import { current } from "./router.js";
import { askForToken, isDeclined, onToken } from "./token.js";
import { troubles } from "./troubles.js";

/**
 * A view: `element` is put on the page, `follow` is told of another address of the same view, `news` of what the shell has
 * learned, `close` ends it.
 * @typedef {{element: HTMLElement, title: () => string, follow?: (route: import("./router.js").Route) => void, news?: () => void, close?: () => void}} View
 */
/** Each is fetched when it is first wanted: whoever looks at one view waits for no other. */
const VIEWS = {
  overview: async () => (await import("./views/overview.js")).openOverview,
  board: async () => (await import("./views/board.js")).openBoard,
  tables: async () => (await import("./views/tables.js")).openTables,
  table: async () => (await import("./views/table.js")).openTable,
  changes: async () => (await import("./views/changes.js")).openChanges,
  topics: async () => (await import("./views/topics.js")).openTopics,
  topic: async () => (await import("./views/topic.js")).openTopic,
  missing: async () => openMissing,
};
const AT_HOME = { table: "tables", topic: "topics" };
// Asked every two seconds, an answer is old after three that did not come.
const OLD_MS = 7000;

const place = document.querySelector("main");
const wrong = document.querySelector(".troubles");
const pill = document.querySelector("[data-link]");
const pillWords = document.querySelector("[data-link-words]");
const links = [...document.querySelectorAll("nav a")];

/** What the shell knows, for every view. */
const shell = {
  cluster: new Poll("/cluster", () => heard()),
  tables: new Poll("/tables", () => heard()),
  /** Where a stream stands, as the view that has it says: it is more than the link, which may be fine without it. */
  stream: null,
  setStream(state) {
    shell.stream = state;
    soon(drawShell);
  },
};

/** @type {View|null} */
let view = null;
/** Where the view on the page is, and where the reader wants to be: they differ while a view is fetched. */
let shown = null;
let route = null;
let told = "";

function heard() {
  soon(drawShell);
  view?.news?.();
}

async function follow() {
  const next = current();
  const isSame = view && shown.view === next.view && shown.table === next.table && shown.topic === next.topic;
  route = next;
  const at = AT_HOME[next.view] ?? next.view;
  for (const each of links) setAttribute(each, "aria-current", each.dataset.view === at ? "page" : null);
  if (isSame) {
    shown = next;
    view.follow?.(next);
  } else {
    const open = await opener(next.view);
    // Somebody may have gone on while it was fetched.
    if (route !== next) return;
    const isFirst = view === null;
    view?.close?.();
    shell.stream = null;
    shown = next;
    view = open(next, shell);
    place.replaceChildren(view.element);
    scrollTo(0, 0);
    if (!isFirst) focusOnHeading();
  }
  document.title = `${view.title()} · lastword`;
  soon(drawShell);
}

/** What opens a view; while the server is away, a view that says so and is opened again when it is back. */
async function opener(name) {
  try {
    return await VIEWS[name]();
  } catch {
    unanswered();
    return openUnfetched;
  }
}

function openUnfetched() {
  const forget = onLink(({ state }) => {
    if (state !== "live") return;
    view?.close?.();
    view = null;
    follow();
  });
  return {
    element: h(
      "div",
      {},
      h("h1", {}, "Not here yet"),
      note(
        "error",
        "This view is not loaded, and the server does not answer.",
        "It is opened as soon as the server is back.",
      ),
    ),
    title: () => "Not here yet",
    close: forget,
  };
}

/** One who hears the page learns where he is. */
function focusOnHeading() {
  const heading = place.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

function drawShell() {
  const found = troubles({ ...shell, link, isDeclined: isDeclined(), host: location.host });
  drawLink();
  drawTroubles(found);
  // A banner says that it is not fresh, and the numbers look it.
  const isOld = link.state === "lost" || shell.cluster.value?.state === "away" || isAsleep();
  setAttribute(place, "data-stale", isOld ? (link.state === "lost" ? "server" : "cluster") : null);
  const headline = found
    .filter((each) => !each.isInfo)
    .map((each) => each.what.replace(/ for [\d hmins]+/, ""))
    .join(" ");
  if (headline !== told) announce(headline || "All is well again.");
  told = headline;
}

const isAsleep = () => link.lastAnswer !== null && Date.now() - link.lastAnswer > OLD_MS;

function drawLink() {
  const state = link.state === "live" && (shell.stream?.name === "lost" || isAsleep()) ? "waiting" : link.state;
  setAttribute(pill, "data-link", state);
  const isAway = link.state === "live" && shell.cluster.value?.state === "away";
  setAttribute(pill, "data-mark", isAway ? "trouble" : null);
  if (isAway) return setText(pillWords, "Kafka is away");
  const words = {
    live: shell.stream?.name === "live" ? "Live, every change" : "Live",
    waiting:
      link.lastAnswer === null
        ? "Connecting"
        : shell.stream?.name === "lost"
          ? "Changes stopped, coming back"
          : `${lasting(Date.now() - link.lastAnswer)} old`,
    lost: link.lastAnswer === null ? "No answer" : `No answer, ${lasting(Date.now() - link.lastAnswer)} old`,
  }[state];
  setText(pillWords, words);
}

function drawTroubles(found) {
  wrong.hidden = found.length === 0;
  // Rebuilt only when the words differ, so that what somebody reads or selects there stays.
  const words = JSON.stringify(found);
  if (wrong.dataset.words === words) return;
  wrong.dataset.words = words;
  fill(
    wrong,
    h(
      "ul",
      {},
      found.map((each) =>
        h(
          "li",
          { class: each.isInfo ? "trouble info" : "trouble", "data-trouble": each.kind, "data-mark": "trouble" },
          h("span", { class: "mark", "aria-hidden": "true" }),
          h(
            "div",
            {},
            h("p", { class: "trouble-what" }, each.what),
            h(
              "p",
              { class: "trouble-next" },
              each.next.map((part) => (typeof part === "string" ? part : h("code", {}, part.command))),
            ),
          ),
          each.action
            ? h("button", { type: "button", on: { click: () => askForToken({ isAsked: true }) } }, each.action)
            : null,
        ),
      ),
    ),
  );
}

function openMissing() {
  return {
    element: h(
      "div",
      {},
      h("h1", {}, "Nothing here"),
      note("missing", "This page has no such view.", "The views are in the bar above."),
    ),
    title: () => "Nothing here",
  };
}

const THEMES = ["system", "light", "dark"];

function setUpTheme() {
  const button = document.querySelector("[data-theme-button]");
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    setText(button.lastChild, `Theme: ${theme}`);
  };
  const kept = read("theme");
  show(THEMES.includes(kept) ? kept : "system");
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    show(next);
    try {
      localStorage.setItem("theme", next);
    } catch {
      // Storage may be forbidden: then it holds until the next reload.
    }
  });
}

function read(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  place.focus();
});
setUpTheme();
onLink(() => soon(drawShell));
onToken(() => soon(drawShell));
everySecond(() => {
  tick();
  drawShell();
});
addEventListener("hashchange", follow);
follow();
