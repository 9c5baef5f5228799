/**
 * One table: find a key, go through pages of any depth, and see rows change while they are looked at. The stream begins at
 * the position of the page that was read, so nothing falls between the two.
 */

import { Refusal, isAborted, text } from "../api.js";
import { fill, h, setAttribute, setText } from "../dom.js";
import { count, plural } from "../format.js";
import { LivePage } from "../live_page.js";
import { loading, note, problemNote } from "../notes.js";
import { soon } from "../paint.js";
import { stateMark, setState } from "../parts.js";
import { current, go, href, stay } from "../router.js";
import { pageOf, rowOf } from "../row.js";
import { openStream } from "../stream.js";
import { onToken } from "../token.js";
import { editRow } from "./edit.js";
import { openDetail } from "./detail.js";
import { rowsSheet } from "./table_rows.js";

const PAGE_ROWS = 50;

export function openTable(route, shell) {
  const name = route.table;
  const path = `/tables/${encodeURIComponent(name)}`;
  /** How the table stands, as the shell has learned it. */
  const standing = {
    get value() {
      return shell.tables.value?.tables.find((table) => table.name === name) ?? null;
    },
    get problem() {
      const { value, problem: why } = shell.tables;
      return value
        ? new Refusal(404, {
            code: "no_such_table",
            message: "no table of this name is served here",
            hint: "The tables that are served are in the list of tables.",
          })
        : why;
    },
    asked: () => shell.tables.asked(),
  };
  /** The cursors of the pages before this one: the way back. */
  const way = [];
  let query = queryOf(route);
  let key = route.key;
  let page = null;
  let stream = null;
  let reading = null;
  let problem = null;
  /** What somebody has just typed to find it, and the address to which that led. */
  let wanted = null;

  const parts = frame(name);
  const sheet = rowsSheet(name, () => query);
  const detail = openDetail({ name, standing, onClose: () => go(addressOf(null)) });
  parts.split.append(detail.element);
  parts.form.addEventListener("submit", (event) => {
    event.preventDefault();
    find(parts.search.value);
  });
  parts.clear.addEventListener("click", () => {
    parts.search.value = "";
    go(href(["tables", name]));
  });
  parts.next.addEventListener("click", () => {
    way.push(query.cursor ?? "");
    go(addressOf(key, { ...query, cursor: page.next }));
  });
  parts.previous.addEventListener("click", () => go(addressOf(key, { ...query, cursor: way.pop() ?? "" })));
  parts.add.addEventListener("click", async () => {
    const stays = stay();
    const done = await editRow({ name, codecs: standing.value, row: null });
    if (!done) return;
    if (stays() && !done.wasLeft) go(addressOf(done.key));
    detail.acknowledge(done);
  });
  parts.split.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && key !== null) go(addressOf(null));
  });

  const addressOf = (k, q = query) =>
    href(k === null ? ["tables", name] : ["tables", name, k], { prefix: q.prefix, start: q.start, cursor: q.cursor });

  /** What was typed is a key, if there is a row of it, and the beginning of keys otherwise. */
  function find(typed) {
    if (!typed) return go(href(["tables", name]));
    // Only text and bytes have beginnings; a number or JSON is where the page starts.
    const isWhole = !["string", "bytes"].includes(standing.value?.key);
    const address = href(["tables", name], isWhole ? { start: typed } : { prefix: typed });
    if (location.hash === address) {
      if (page?.find(typed)) go(addressOf(typed), { replace: true });
      return;
    }
    wanted = { key: typed, address };
    go(address);
  }

  async function read() {
    reading?.abort();
    reading = new AbortController();
    const mine = reading;
    stream?.close();
    const asked = new URLSearchParams({ limit: String(PAGE_ROWS) });
    for (const [field, value] of Object.entries(query)) if (value) asked.set(field, value);
    try {
      // Codecs first: how a key is read depends on them.
      if (!standing.value) await standing.asked();
      if (!standing.value) throw standing.problem;
      const answer = pageOf(await text(`${path}/rows?${asked}`, { signal: mine.signal }), standing.value.key);
      if (mine.signal.aborted) return;
      problem = null;
      page = new LivePage(answer, { codec: standing.value.key, query });
      listen(answer.position);
      detail.listenFrom(answer.position, page.find(key));
      if (wanted?.address === location.hash && page.find(wanted.key)) go(addressOf(wanted.key), { replace: true });
      wanted = null;
    } catch (failure) {
      if (isAborted(failure) || mine.signal.aborted) return;
      problem = failure;
      page = null;
      if (!(failure.status >= 400 && failure.status < 500))
        setTimeout(() => mine === reading && !mine.signal.aborted && read(), 2000);
    }
    soon(draw);
  }

  function listen(position) {
    stream = openStream({
      path: `/changes?tables=${encodeURIComponent(name)}`,
      // A table that was never written to has no position yet: its stream begins now.
      after: position ? `${name}=${position}` : null,
      onState: (state) => shell.setStream(state),
      onGone: read,
      onEvents: (events) => {
        for (const event of events) {
          if (event.kind === "reset") return void read();
          const row = rowOf(event.text, () => standing.value.key);
          page?.apply(row);
          detail.apply(row);
        }
        soon(draw);
      },
    });
  }

  function drawHead() {
    const told = standing.value;
    if (!told) return;
    setState(parts.state, told.state);
    setText(
      parts.facts,
      `${told.rows === null ? "rows unknown" : plural(told.rows, "row")} · ${told.lag === null ? "lag unknown" : `${plural(told.lag, "record")} behind`} · keys ${told.key}, values ${told.value}`,
    );
    fill(parts.topic, "topic ", h("a", { href: href(["topics", told.topic]) }, told.topic));
    sheet.setCodec(told.value);
    const isText = ["string", "bytes"].includes(told.key);
    setAttribute(
      parts.search,
      "placeholder",
      isText ? "a key, or the beginning of one" : `a key (${told.key}), or where to start`,
    );
  }

  function draw() {
    setAttribute(parts.split, "data-open", key !== null);
    if (problem) {
      const isMissing = problem.status === 404;
      fill(parts.place, isMissing ? problemNote(problem, name) : problemNote(problem, "Rows"));
      parts.foot.hidden = true;
      return;
    }
    if (!page) return;
    if (!page.rows.length && !page.hasLeaving) {
      const isFound = query.prefix || query.start || query.cursor;
      if (!parts.place.querySelector("[data-state-note=empty]")) {
        sheet.clear();
        fill(
          parts.place,
          isFound
            ? note("empty", "No row of such a key.", "Nothing in this table begins so. New ones appear by themselves.")
            : note(
                "empty",
                "This table is empty.",
                "A row appears as soon as one is written: with Add row above, or ",
                h("code", {}, `lastword put ${standing.value?.topic ?? name} KEY VALUE`),
              ),
        );
      }
    } else {
      if (!sheet.element.isConnected) fill(parts.place, sheet.element);
      sheet.show(page, key);
    }
    parts.foot.hidden = false;
    parts.next.disabled = page.next === null;
    parts.previous.disabled = !query.cursor;
    setText(parts.previous, query.cursor && !way.length ? "First page" : "Previous page");
    setText(
      parts.shown,
      page.isMoved
        ? `${count(page.rows.length)} rows shown, and more came: go to the next page and back to see them in pages`
        : `${plural(page.rows.length, "row")} on this page`,
    );
    page.settle();
  }

  function follow(next) {
    const asked = queryOf(next);
    const isOther = JSON.stringify(asked) !== JSON.stringify(query);
    const before = key;
    query = asked;
    key = next.key;
    // Whoever has gone on looks for it no more.
    if (wanted?.address !== location.hash) wanted = null;
    if (document.activeElement !== parts.search) parts.search.value = query.prefix ?? query.start ?? "";
    parts.clear.hidden = !(query.prefix || query.start);
    if (isOther) {
      if (!query.cursor) way.length = 0;
      read();
    }
    detail.follow(key, page?.find(key) ?? null);
    soon(draw);
    if (before !== key) soon(() => keepFocus(before));
  }

  /** Where the focus goes when what had it is no longer there: to the row that was opened, or back to the line of the one that was closed. */
  function keepFocus(before) {
    const at = document.activeElement;
    if (at && at !== document.body && at.checkVisibility()) return;
    if (key === null) sheet.focus(before);
    else detail.focus();
  }

  const forget = onToken(() => problem?.status === 401 && read());
  fill(parts.place, loading(name));
  drawHead();
  parts.search.value = query.prefix ?? query.start ?? "";
  parts.clear.hidden = !(query.prefix || query.start);
  read();
  detail.follow(key, null);
  return {
    element: parts.element,
    title: () => (current().key ? `${current().key} · ${name}` : name),
    follow,
    news: () => soon(drawHead),
    close: () => {
      forget();
      reading?.abort();
      stream?.close();
      detail.close();
    },
  };
}

const queryOf = (route) => ({
  prefix: route.query.get("prefix"),
  start: route.query.get("start"),
  cursor: route.query.get("cursor"),
});

function frame(name) {
  const parts = {
    state: stateMark("unknown", "reading"),
    facts: h("span", { class: "soft" }),
    topic: h("span", { class: "soft" }),
    search: h("input", {
      type: "search",
      "aria-label": "Find by key or prefix",
      autocomplete: "off",
      spellcheck: "false",
    }),
    clear: h("button", { type: "button", class: "quiet", hidden: true }, "Show all"),
    add: h("button", { type: "button" }, "Add row"),
    previous: h("button", { type: "button", disabled: true }, "Previous page"),
    next: h("button", { type: "button", disabled: true }, "Next page"),
    shown: h("span", { class: "soft small", role: "status" }),
    place: h("div", { class: "card rows-place" }),
  };
  parts.form = h(
    "form",
    { role: "search" },
    parts.search,
    h("button", { type: "submit", class: "main" }, "Find"),
    parts.clear,
  );
  parts.foot = h(
    "nav",
    { class: "bar pages", "aria-label": "Pages", hidden: true },
    parts.previous,
    parts.next,
    parts.shown,
  );
  parts.list = h("div", { class: "rows-side" }, parts.place, parts.foot);
  parts.split = h("div", { class: "split" }, parts.list);
  parts.element = h(
    "div",
    { class: "table-view" },
    h("a", { class: "crumb", href: href(["tables"]) }, "Tables"),
    h("div", { class: "head" }, h("h1", {}, name), parts.state, parts.facts, parts.topic),
    h("div", { class: "bar table-bar" }, parts.form, parts.add),
    parts.split,
  );
  return parts;
}
