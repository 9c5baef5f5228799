/** The served tables: their topics and their status. */

import { fill, h, setAttribute, setText } from "../dom.js";
import { count } from "../format.js";
import { loading, note, problemNote } from "../notes.js";
import { soon } from "../paint.js";
import { line, setFigure, setState, sheet, stateMark } from "../parts.js";
import { href } from "../router.js";
import { KeyedRows } from "../rows.js";

const CELLS = [
  { name: "table", isHead: true },
  { name: "state", label: "State" },
  { name: "rows", class: "num", label: "Rows" },
  { name: "lag", class: "num", label: "Lag" },
  { name: "topic", label: "Topic" },
  { name: "partitions", class: "num", label: "Partitions" },
  { name: "codecs", label: "Key, value" },
];

export function openTables(_route, shell) {
  const { element: frame, body } = sheet(
    "Served tables",
    [
      { name: "Table" },
      { name: "State" },
      { name: "Rows", class: "num" },
      { name: "Lag", class: "num", hint: "records of the topic that are not in the table yet" },
      { name: "Topic" },
      { name: "Partitions", class: "num" },
      { name: "Key, value" },
    ],
    { "data-narrow": "cards" },
  );
  const rows = new KeyedRows(body, { keyOf: (table) => table.name, make, update });
  const place = h("div", { class: "card" }, loading("the tables"));

  function draw() {
    const { tables } = shell;
    if (!tables.value) return tables.problem ? fill(place, problemNote(tables.problem, "Tables")) : undefined;
    if (!tables.value.tables.length)
      return fill(
        place,
        note(
          "empty",
          "No table is served.",
          "Start the server with a table: ",
          h("code", {}, "lastword serve --table users=user-profiles"),
        ),
      );
    if (!frame.isConnected) fill(place, frame);
    rows.show(tables.value.tables);
  }
  draw();
  return {
    element: h(
      "div",
      {},
      h(
        "div",
        { class: "head" },
        h("h1", {}, "Tables"),
        h("span", { class: "soft" }, "each has the newest value of every key of its topic"),
      ),
      place,
    ),
    title: () => "Tables",
    news: () => soon(draw),
  };
}

function make(table) {
  const { element, cells } = line(CELLS, { "data-table": table.name });
  cells.table.append(h("a", { href: href(["tables", table.name]) }, table.name));
  cells.state.append(stateMark("unknown"));
  cells.topic.append(h("a", { href: href(["topics", table.topic]) }, table.topic));
  element.made = cells;
  return element;
}

function update(element, table) {
  const cells = element.made;
  setState(cells.state.firstChild, table.state);
  setAttribute(cells.state, "title", table.why);
  setFigure(cells.rows, table.rows, count, table.why ?? "not read yet");
  setFigure(cells.lag, table.lag, count, table.why ?? "not known yet");
  setFigure(cells.partitions, table.partitions || null, count, "not known yet");
  setText(cells.codecs, `${table.key}, ${table.value}`);
}
