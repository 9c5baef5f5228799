/**
 * One table: find a key, go through pages of any depth, and see rows change live. The stream starts at the position of the
 * page that was read, so no change between the two is missed.
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
  /** The status of the table, from the shell's last answer. */
  const status = {
    get value() {
      return shell.tables.value?.tables.find((each) => each.name === name) ?? null;
    },
    get problem() {
      const { value, problem: why } = shell.tables;
      return value
        ? new Refusal(404, {
            code: "no_such_table",
            message: "no table with this name is served here",
            hint: "See the list of tables.",
          })
        : why;
    },
    asked: () => shell.tables.asked(),
  };
  /** The cursors of the pages before this one, to go back. */
  const previousCursors = [];
  let query = queryOf(route);
  let key = route.key;
  let page = null;
  let stream = null;
  let reading = null;
  let problem = null;
  /** The key that the reader has typed, and the address to which it led. */
  let lookup = null;

  const parts = frame(name);
  const sheet = rowsSheet(name, () => query);
  const detail = openDetail({ name, status, onClose: () => go(addressOf(null)) });
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
    previousCursors.push(query.cursor ?? "");
    go(addressOf(key, { ...query, cursor: page.next }));
  });
  parts.previous.addEventListener("click", () => go(addressOf(key, { ...query, cursor: previousCursors.pop() ?? "" })));
  parts.add.addEventListener("click", async () => {
    const stays = stay();
    const done = await editRow({ name, codecs: status.value, row: null });
    if (!done) return;
    if (stays() && !done.wasLeft) go(addressOf(done.key));
    detail.acknowledge(done);
  });
  parts.split.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && key !== null) go(addressOf(null));
  });

  const addressOf = (k, q = query) =>
    href(k === null ? ["tables", name] : ["tables", name, k], { prefix: q.prefix, start: q.start, cursor: q.cursor });

  /** The typed text is a key if there is a row with it, otherwise the beginning of keys. */
  function find(typed) {
    if (!typed) return go(href(["tables", name]));
    // Only text and bytes have prefixes; with a number or JSON the page starts at that key.
    const isWhole = !["string", "bytes"].includes(status.value?.key);
    const address = href(["tables", name], isWhole ? { start: typed } : { prefix: typed });
    if (location.hash === address) {
      if (page?.find(typed)) go(addressOf(typed), { replace: true });
      return;
    }
    lookup = { key: typed, address };
    go(address);
  }

  async function read() {
    reading?.abort();
    reading = new AbortController();
    const attempt = reading;
    stream?.close();
    const asked = new URLSearchParams({ limit: String(PAGE_ROWS) });
    for (const [field, value] of Object.entries(query)) if (value) asked.set(field, value);
    try {
      // First the codecs: they decide how a key is read.
      if (!status.value) await status.asked();
      if (!status.value) throw status.problem;
      const answer = pageOf(await text(`${path}/rows?${asked}`, { signal: attempt.signal }), status.value.key);
      if (attempt.signal.aborted) return;
      problem = null;
      page = new LivePage(answer, { codec: status.value.key, query });
      listen(answer.position);
      detail.listenFrom(answer.position, page.find(key));
      if (lookup?.address === location.hash && page.find(lookup.key)) go(addressOf(lookup.key), { replace: true });
      lookup = null;
    } catch (failure) {
      if (isAborted(failure) || attempt.signal.aborted) return;
      problem = failure;
      page = null;
      if (!(failure.status >= 400 && failure.status < 500))
        setTimeout(() => attempt === reading && !attempt.signal.aborted && read(), 2000);
    }
    soon(draw);
  }

  function listen(position) {
    stream = openStream({
      path: `/changes?tables=${encodeURIComponent(name)}`,
      // An empty topic has no position yet: its stream starts now.
      after: position ? `${name}=${position}` : null,
      onState: (state) => shell.setStream(state),
      onGone: read,
      onEvents: (events) => {
        for (const event of events) {
          if (event.kind === "reset") return void read();
          const row = rowOf(event.text, () => status.value.key);
          page?.apply(row);
          detail.apply(row);
        }
        soon(draw);
      },
    });
  }

  function drawHead() {
    const table = status.value;
    if (!table) return;
    setState(parts.state, table.state);
    setText(
      parts.facts,
      `${table.rows === null ? "rows unknown" : plural(table.rows, "row")} · ${table.lag === null ? "lag unknown" : `${plural(table.lag, "record")} behind`} · keys ${table.key}, values ${table.value}`,
    );
    fill(parts.topic, "topic ", h("a", { href: href(["topics", table.topic]) }, table.topic));
    sheet.setCodec(table.value);
    const isText = ["string", "bytes"].includes(table.key);
    setAttribute(
      parts.search,
      "placeholder",
      isText ? "a key, or the beginning of one" : `a key (${table.key}), or where to start`,
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
            ? note("empty", "No matching row.", "No key of this table matches. New rows appear by themselves.")
            : note(
                "empty",
                "This table is empty.",
                "Write a row with Add row above, or with ",
                h("code", {}, `lastword put ${status.value?.topic ?? name} KEY VALUE`),
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
    setText(parts.previous, query.cursor && !previousCursors.length ? "First page" : "Previous page");
    setText(
      parts.summary,
      page.isMoved
        ? `${count(page.rows.length)} rows shown, and more were added: open the next page and come back to see them`
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
    // The reader has left the address of the search.
    if (lookup?.address !== location.hash) lookup = null;
    if (document.activeElement !== parts.search) parts.search.value = query.prefix ?? query.start ?? "";
    parts.clear.hidden = !(query.prefix || query.start);
    if (isOther) {
      if (!query.cursor) previousCursors.length = 0;
      read();
    }
    detail.follow(key, page?.find(key) ?? null);
    soon(draw);
    if (before !== key) soon(() => keepFocus(before));
  }

  /** Moves the focus when its element is gone: to the row that was opened, or to the line of the row that was closed. */
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
    summary: h("span", { class: "soft small", role: "status" }),
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
    parts.summary,
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
