/**
 * The start of the page, and the shell around every view: which view the address names, whether the server answers, and
 * the problems. Views open and close; the shell, and what it asks the server every two seconds, stay.
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
 * A view: `element` is put on the page, `follow` gets another address of the same view, `news` is called after new
 * answers to the shell, `close` ends it.
 * @typedef {{element: HTMLElement, title: () => string, follow?: (route: import("./router.js").Route) => void, news?: () => void, close?: () => void}} View
 */
/** Each module is fetched when its view is first opened: a view does not wait for the others. */
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
const NAVIGATION = { table: "tables", topic: "topics" };
// The page asks every two seconds: an answer is old after three missing ones.
const OLD_MS = 7000;

const place = document.querySelector("main");
const banner = document.querySelector(".troubles");
const pill = document.querySelector("[data-link]");
const pillWords = document.querySelector("[data-link-words]");
const links = [...document.querySelectorAll("nav a")];

/** What the shell knows, shared with every view. */
const shell = {
  cluster: new Poll("/cluster", () => onAnswer()),
  tables: new Poll("/tables", () => onAnswer()),
  /** The state of the view's stream: the link may be fine while the stream is not. */
  stream: null,
  setStream(state) {
    shell.stream = state;
    soon(drawShell);
  },
};

/** @type {View|null} */
let view = null;
/** The address of the view on the page, and the address that the reader chose: they differ while a view is fetched. */
let openRoute = null;
let route = null;
let announced = "";

function onAnswer() {
  soon(drawShell);
  view?.news?.();
}

async function follow() {
  const next = current();
  const isSame = view && openRoute.view === next.view && openRoute.table === next.table && openRoute.topic === next.topic;
  route = next;
  const at = NAVIGATION[next.view] ?? next.view;
  for (const each of links) setAttribute(each, "aria-current", each.dataset.view === at ? "page" : null);
  if (isSame) {
    openRoute = next;
    view.follow?.(next);
  } else {
    const open = await opener(next.view);
    // The reader may have chosen another view while this one was fetched.
    if (route !== next) return;
    const isFirst = view === null;
    view?.close?.();
    shell.stream = null;
    openRoute = next;
    view = open(next, shell);
    place.replaceChildren(view.element);
    scrollTo(0, 0);
    if (!isFirst) focusOnHeading();
  }
  document.title = `${view.title()} · lastword`;
  soon(drawShell);
}

/** The function that opens a view; while the server is away, a note that is replaced when the server is back. */
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
      h("h1", {}, "Not loaded yet"),
      note(
        "error",
        "This view is not loaded, because the server does not answer.",
        "The view opens as soon as the server is back.",
      ),
    ),
    title: () => "Not loaded yet",
    close: forget,
  };
}

/** A screen reader announces the new view. */
function focusOnHeading() {
  const heading = place.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

function drawShell() {
  const problems = troubles({ ...shell, link, isDeclined: isDeclined(), host: location.host });
  drawLink();
  drawTroubles(problems);
  // A banner says that the numbers are old, and they look pale.
  const isOld = link.state === "lost" || shell.cluster.value?.state === "away" || isAsleep();
  setAttribute(place, "data-stale", isOld ? (link.state === "lost" ? "server" : "cluster") : null);
  const headline = problems
    .filter((each) => !each.isInfo)
    .map((each) => each.what.replace(/ for [\d hmins]+/, ""))
    .join(" ");
  if (headline !== announced) announce(headline || "All is well again.");
  announced = headline;
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
          ? "Changes stopped, reconnecting"
          : `${lasting(Date.now() - link.lastAnswer)} old`,
    lost: link.lastAnswer === null ? "No answer" : `No answer, ${lasting(Date.now() - link.lastAnswer)} old`,
  }[state];
  setText(pillWords, words);
}

function drawTroubles(problems) {
  banner.hidden = problems.length === 0;
  // Drawn again only when the words differ, so that a selection stays.
  const words = JSON.stringify(problems);
  if (banner.dataset.words === words) return;
  banner.dataset.words = words;
  fill(
    banner,
    h(
      "ul",
      {},
      problems.map((each) =>
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
      note("missing", "There is no such view.", "The views are in the bar above."),
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
  const saved = read("theme");
  show(THEMES.includes(saved) ? saved : "system");
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    show(next);
    try {
      localStorage.setItem("theme", next);
    } catch {
      // Storage may be forbidden: then the theme lasts until the next reload.
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
