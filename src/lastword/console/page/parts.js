/** Small parts that several views share: a state, a number that may be unknown, a table, a card. */

import { h, setAttribute, setText } from "./dom.js";
import { isKnown } from "./format.js";

const MARKS = {
  running: "ok",
  ready: "ok",
  connected: "ok",
  ok: "ok",
  done: "ok",
  silent: "trouble",
  connecting: "trouble",
  away: "trouble",
  trouble: "trouble",
  "catching-up": "unknown",
  rebuilding: "trouble",
  unknown: "unknown",
  failed: "ended",
};
const WORDS = { silent: "silent", "catching-up": "catching up", ok: "fine" };

/** A state as a shape and a word. */
export function stateMark(state, words) {
  const element = h("span", { class: "state" }, h("span", { class: "mark", "aria-hidden": "true" }), h("span", {}));
  setState(element, state, words);
  return element;
}

export function setState(element, state, words) {
  setAttribute(element, "data-mark", MARKS[state] ?? "unknown");
  setText(element.lastChild, words ?? WORDS[state] ?? state);
}

/** Shows a formatted value, or "unknown" with the reason as a tooltip. */
export function setFigure(element, value, format, why) {
  setText(element, isKnown(value) ? format(value) : "unknown");
  element.classList.toggle("unknown", !isKnown(value));
  setAttribute(element, "title", isKnown(value) ? null : why);
}

export function figure(value, format, why, props = {}) {
  const element = h("span", props);
  setFigure(element, value, format, why);
  return element;
}

/**
 * A table with its head. Roles are explicit, because a table that becomes cards on a narrow screen loses its implicit roles.
 * @param {string} name
 * @param {{name: string, class?: string, hint?: string}[]} columns
 */
export function sheet(name, columns, props = {}) {
  const body = h("tbody", { role: "rowgroup" });
  const element = h(
    "table",
    { class: "sheet", role: "table", "aria-label": name, ...props },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        columns.map((column) =>
          h(
            "th",
            { role: "columnheader", scope: "col", class: column.class, title: column.hint },
            column.isUnseen ? h("span", { class: "unseen" }, column.name) : column.name,
          ),
        ),
      ),
    ),
    body,
  );
  // A table that may be wider than the page can be scrolled with the keyboard.
  const frame = props.class?.includes("lines")
    ? h("div", {}, element)
    : h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${name}, to scroll` }, element);
  return { element: frame, table: element, body };
}

/** A row of a sheet: the cells by name, to be filled later. */
export function line(cells, props = {}) {
  const made = {};
  const element = h("tr", { role: "row", ...props });
  for (const { name, class: style, isHead, label } of cells) {
    made[name] = h(isHead ? "th" : "td", {
      role: isHead ? "rowheader" : "cell",
      scope: isHead ? "row" : null,
      class: style,
      "data-cell": name,
      "data-label": label,
    });
    element.append(made[name]);
  }
  return { element, cells: made };
}

export function card(name, ...children) {
  return h(
    "section",
    { class: "card", "aria-label": name },
    h("div", { class: "card-head" }, h("h2", {}, name)),
    h("div", { class: "card-body" }, children),
  );
}
