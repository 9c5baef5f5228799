/** The live feed of puts and deletes, the newest first: it can be paused, filtered and resumed without loss. */

import { fill, h, setAttribute, setText } from "../dom.js";
import { Feed, MOST_SHOWN, MOST_WAITING } from "../feed.js";
import { count, plural, since } from "../format.js";
import { loading, note, problemNote } from "../notes.js";
import { never, soon } from "../paint.js";
import { sheet } from "../parts.js";
import { current, go, href } from "../router.js";
import { ChangeLines } from "./change_lines.js";

const KINDS = { all: "Puts and deletes", put: "Puts", delete: "Deletes" };

const feed = new Feed();

export function openChanges(route, shell) {
  const parts = frame();
  const rows = new ChangeLines(parts.body);
  let isOpen = false;
  let ownAddress = "";

  parts.pause.addEventListener("click", () => {
    if (feed.isPaused) feed.resume();
    else feed.pause();
    soon(draw);
  });
  parts.clear.addEventListener("click", () => {
    feed.clear();
    soon(draw);
  });
  parts.filter.addEventListener("input", filter);
  parts.kind.addEventListener("change", filter);
  parts.tables.addEventListener("change", () => {
    address();
    choose();
  });
  feed.onNews = () => soon(draw);
  feed.onState = (state) => {
    shell.setStream(state);
    soon(draw);
  };

  function filter() {
    feed.setFilter({ text: parts.filter.value, kind: parts.kind.value });
    address();
    soon(draw);
  }

  /** Writes the filter into the address, which can be shared. Only a choice of the reader changes it. */
  function address() {
    // This view stays on the page while the next view is fetched.
    if (current().view !== "changes") return;
    const chosen = boxes()
      .filter((box) => box.checked)
      .map((box) => box.value);
    const isAll = chosen.length === boxes().length;
    ownAddress = href(["changes"], {
      tables: isAll ? null : chosen.join(","),
      filter: parts.filter.value,
      kind: parts.kind.value === "all" ? null : parts.kind.value,
    });
    go(ownAddress, { replace: true });
  }

  const boxes = () => [...parts.tables.querySelectorAll("input")];

  /** Starts as soon as the tables are known, and again when other tables are chosen. */
  function begin() {
    const tables = shell.tables.value?.tables;
    if (!tables?.length) return;
    const names = tables.map((table) => table.name);
    if (parts.tables.dataset.names !== names.join()) {
      parts.tables.dataset.names = names.join();
      const selected = route.query.get("tables")?.split(",") ?? names;
      fill(
        parts.tables,
        h("legend", {}, "Tables"),
        names.map((name) =>
          h(
            "label",
            {},
            h("input", { type: "checkbox", value: name, checked: selected.includes(name) }),
            ` ${name}`,
          ),
        ),
      );
    }
    if (isOpen) return;
    isOpen = true;
    choose();
  }

  function choose() {
    const chosen = boxes()
      .filter((box) => box.checked)
      .map((box) => box.value);
    if (!chosen.length) {
      feed.close();
      return soon(draw);
    }
    feed.open(chosen, new Map(shell.tables.value.tables.map((table) => [table.name, table])));
  }

  function follow(next) {
    if (location.hash === ownAddress) return;
    route = next;
    parts.filter.value = next.query.get("filter") ?? "";
    parts.kind.value = KINDS[next.query.get("kind")] ? next.query.get("kind") : "all";
    feed.setFilter({ text: parts.filter.value, kind: parts.kind.value });
    const selected = next.query.get("tables")?.split(",");
    for (const box of boxes()) box.checked = selected?.includes(box.value) ?? true;
    if (isOpen) choose();
  }

  function draw() {
    begin();
    setText(parts.pause, feed.isPaused ? "Resume" : "Pause");
    setAttribute(parts.pause, "data-paused", feed.isPaused);
    const waits = feed.isPaused ? feed.waits : null;
    setAttribute(parts.waiting, "data-waiting", waits);
    setText(
      parts.waiting,
      !feed.isPaused
        ? ""
        : feed.isFull
          ? `Paused: ${count(MOST_WAITING)} changes wait, and more in Kafka; Resume reads them`
          : `Paused: ${plural(waits, "change")} wait${waits === 1 ? "s" : ""}`,
    );
    setAttribute(parts.seen, "data-seen", feed.seen);
    setText(parts.seen, `${plural(feed.seen, "change")} seen`);
    parts.gap.hidden = feed.hadGap === null;
    if (feed.hadGap !== null)
      fill(
        parts.gap,
        h("b", {}, "There is a gap: "),
        "a table was rebuilt, or the log has lost changes, ",
        since(feed.hadGap),
        ". The changes listed after that are complete.",
      );
    const nothing = nothingShown();
    if (nothing) {
      if (parts.place.dataset.nothing === nothing.words) return;
      parts.place.dataset.nothing = nothing.words;
      rows.show([]);
      return void fill(parts.place, nothing.element);
    }
    delete parts.place.dataset.nothing;
    if (!parts.sheet.isConnected) fill(parts.place, parts.sheet);
    if (rows.show(feed.changes)) soon(draw);
  }

  function nothingShown() {
    if (feed.changes.length) return null;
    const { tables } = shell;
    if (!tables.value)
      return tables.problem
        ? { words: "problem", element: problemNote(tables.problem, "Changes") }
        : { words: "loading", element: loading("the tables") };
    if (!tables.value.tables.length)
      return { words: "none", element: note("empty", "No table is served, so nothing can change.") };
    if (isOpen && !boxes().some((box) => box.checked))
      return { words: "unchosen", element: note("empty", "No table is chosen.") };
    if (feed.state?.name === "refused")
      return { words: "refused", element: problemNote(feed.state.refusal, "Changes") };
    const isFiltered = feed.filter.text || feed.filter.kind !== "all";
    return {
      words: `quiet ${isFiltered}`,
      element: note(
        "empty",
        isFiltered ? "No change has matched yet." : "No change since you opened this view.",
        "Listening since ",
        since(feed.openedAt ?? Date.now()),
        ". A change appears here as soon as it is applied.",
      ),
    };
  }

  follow(route);
  begin();
  soon(draw);
  return {
    element: parts.element,
    title: () => "Changes",
    follow,
    news: () => soon(draw),
    close: () => {
      feed.onNews = feed.onState = () => {};
      feed.close();
      never(draw);
    },
  };
}

function frame() {
  const { element: sheetElement, body } = sheet(
    "Changes",
    [
      { name: "Change" },
      { name: "Key" },
      { name: "Value" },
      { name: "Size", class: "num" },
      { name: "Table" },
      { name: "Offset", class: "num", hint: "partition:offset" },
      { name: "Written", class: "num" },
    ],
    { class: "sheet lines feed" },
  );
  const parts = {
    sheet: sheetElement,
    body,
    pause: h("button", { type: "button", class: "main" }, "Pause"),
    clear: h("button", { type: "button" }, "Clear"),
    waiting: h("span", { class: "small", role: "status" }),
    seen: h("span", { class: "soft small" }),
    filter: h("input", {
      type: "search",
      "aria-label": "Only keys with",
      placeholder: "only keys with …",
      autocomplete: "off",
      spellcheck: "false",
    }),
    kind: h(
      "select",
      { "aria-label": "Kind" },
      Object.entries(KINDS).map(([value, words]) => h("option", { value }, words)),
    ),
    tables: h("fieldset", {}),
    gap: h("p", { class: "refused", hidden: true }),
    place: h("div", { class: "card" }),
  };
  parts.element = h(
    "div",
    {},
    h(
      "div",
      { class: "head" },
      h("h1", {}, "Changes"),
      parts.seen,
      h("span", { class: "soft small" }, `the newest ${MOST_SHOWN} are kept`),
    ),
    h("div", { class: "bar table-bar" }, parts.pause, parts.clear, parts.filter, parts.kind, parts.waiting),
    h("div", { class: "bar table-bar" }, parts.tables),
    parts.gap,
    parts.place,
  );
  return parts;
}
