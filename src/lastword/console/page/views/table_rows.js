/** The rows of a page as lines: key, the beginning of the value, size, time, partition and offset. */

import { fill, h, setAttribute, setText } from "../dom.js";
import { bytes, setSince, since } from "../format.js";
import { line, sheet } from "../parts.js";
import { href } from "../router.js";
import { preview, valueSize } from "../row.js";
import { KeyedRows } from "../rows.js";
import { previewNode } from "../value.js";
import { isolated } from "../visible.js";

const LETTERS = 120;
const CELLS = [
  { name: "key", isHead: true, class: "cell-key" },
  { name: "value", class: "cell-value" },
  { name: "size", class: "num" },
  { name: "time", class: "num" },
  { name: "place", class: "num mono" },
];

/** @param {() => {prefix: string|null, start: string|null, cursor: string|null}} queryOf */
export function rowsSheet(name, queryOf) {
  const { element, table, body } = sheet(
    `Rows of ${name}`,
    [
      { name: "Key" },
      { name: "Value" },
      { name: "Size", class: "num" },
      { name: "Written", class: "num" },
      { name: "Offset", class: "num", hint: "partition:offset" },
    ],
    { class: "sheet lines rows" },
  );
  let codec = "json";
  const rows = new KeyedRows(body, { keyOf: (row) => (row.isOpaqueKey ? `base64 ${row.key}` : row.key), make, update });
  body.addEventListener("keydown", walk);
  body.addEventListener("click", (event) => {
    // A click anywhere in the line opens the row; a selection of text is not a click.
    if (event.target.closest("a, button") || String(getSelection())) return;
    event.target.closest("tr")?.querySelector("a")?.click();
  });

  function make(row) {
    const { element: made, cells } = line(CELLS, { "data-key": row.key });
    const query = queryOf();
    cells.key.append(
      row.isOpaqueKey
        ? h("span", { title: "not readable as text: shown as base64" }, isolated(row.key))
        : h("a", { href: href(["tables", name, row.key], query) }, isolated(row.key)),
    );
    cells.time.append(since(row.timestamp));
    made.made = cells;
    return made;
  }

  function update(made, row) {
    if (made.row === row && made.codec === codec) return;
    made.row = row;
    made.codec = codec;
    const beginning = preview(row, codec, LETTERS);
    const isEmpty = beginning === "" && row.error === null;
    fill(
      made.made.value,
      row.error !== null
        ? h("span", { class: "warned small" }, `not readable as ${codec}`)
        : isEmpty
          ? h("span", { class: "soft small" }, "empty")
          : previewNode(beginning, beginning.length >= LETTERS),
    );
    setText(made.made.size, bytes(valueSize(row, codec)));
    setSince(made.made.time.firstChild, row.timestamp);
    setText(made.made.place, `${row.partition}:${row.offset}`);
  }

  return {
    element,
    table,
    setCodec: (next) => (codec = next),
    clear: () => rows.clear(),
    focus: (key) => rows.elements.get(key)?.querySelector("a")?.focus(),
    show: (page, key) => {
      rows.show(page.rows, { lit: page.lit, gone: page.gone });
      for (const [rowKey, made] of rows.elements) setAttribute(made, "aria-current", rowKey === key ? "true" : null);
    },
  };
}

/** Up and down go from row to row. */
function walk(event) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const at = event.target.closest("tr");
  const next = event.key === "ArrowDown" ? at?.nextElementSibling : at?.previousElementSibling;
  const target = next?.querySelector("a");
  if (!target) return;
  event.preventDefault();
  target.focus();
}
