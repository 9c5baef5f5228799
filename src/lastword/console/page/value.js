/**
 * A value as a person reads it: JSON folded and coloured, text, or bytes. A large part is folded, and made only when the
 * reader opens it: a value of a megabyte costs only its visible part.
 */

import { h } from "./dom.js";
import { bytes, count } from "./format.js";
import { kindAt, membersOf } from "./json_text.js";
import { unbase64 } from "./row.js";
import { isolated, piecewise, visible } from "./visible.js";

const AT_A_TIME = 100;
const OPEN_LETTERS = 3000;
const HEX_BYTES = 1024;

/** @param {import("./row.js").Row} row */
export function valueView(row, codec) {
  if (row.error !== null && row.raw !== null) {
    return h(
      "div",
      { class: "value", "data-value": "bytes" },
      h("p", { class: "warned", role: "note" }, "Not readable as ", codec, ": ", isolated(row.error)),
      bytesView(row.raw),
    );
  }
  if (row.raw !== null || codec === "bytes") {
    return h("div", { class: "value", "data-value": "bytes" }, bytesView(row.raw ?? JSON.parse(row.value)));
  }
  if (codec === "string") return h("div", { class: "value", "data-value": "text" }, textView(JSON.parse(row.value)));
  return h(
    "div",
    { class: "value", "data-value": "json" },
    choice("Form of the value", {
      Folded: () => tree(row.value),
      "As written": () => piecewise(row.value, { tag: "pre" }),
    }),
  );
}

/** One of several forms of the same value, made when it is chosen. */
function choice(name, ways) {
  const place = h("div", { class: "chosen" });
  const buttons = Object.entries(ways).map(([label, make]) => {
    const button = h(
      "button",
      { type: "button", class: "quiet", "aria-pressed": "false", on: { click: () => choose(button, make) } },
      label,
    );
    return button;
  });
  const choose = (button, make) => {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    place.replaceChildren(make());
  };
  choose(buttons[0], Object.values(ways)[0]);
  return h("div", {}, h("div", { class: "choices", role: "group", "aria-label": name }, buttons), place);
}

function textView(text) {
  return text === ""
    ? h("p", { class: "soft" }, "Empty text: a value, not a tombstone.")
    : piecewise(text, { tag: "pre" });
}

/** JSON as a tree. */
export function tree(text) {
  return h("div", { class: "tree" }, node(text, { name: null, start: text.search(/\S/), end: text.length }, 0));
}

function node(text, { name, start, end }, depth) {
  const kind = kindAt(text, start);
  const label = name === null ? null : [h("span", { class: "name" }, isolated(unquoted(name))), ": "];
  if (kind === "object" || kind === "list") return folded(text, start, end, kind, label, depth);
  return h("div", { class: "leaf" }, label, token(text, start, end, kind));
}

function token(text, start, end, kind) {
  if (kind !== "text") return h("span", { class: kind }, text.slice(start, end).trim());
  return h("span", { class: "text" }, "\u201c", piecewise(unquoted(text.slice(start, end)), { piece: 2000 }), "\u201d");
}

function folded(text, start, end, kind, label, depth) {
  const { members, more } = membersOf(text, start, { limit: AT_A_TIME });
  const [open, close] = kind === "object" ? "{}" : "[]";
  if (!members.length) return h("div", { class: "leaf" }, label, h("span", { class: "literal" }, open + close));
  const what = kind === "object" ? "name" : "item";
  const size = `${more === null ? count(members.length) : `more than ${AT_A_TIME}`} ${what}${members.length === 1 ? "" : "s"}`;
  const inside = h("div", { class: "inside", hidden: true });
  const button = h(
    "button",
    { type: "button", class: "fold", "aria-expanded": "false" },
    h("span", { class: "arrow", "aria-hidden": "true" }),
    label,
    h("span", { class: "soft" }, `${open} ${size} ${close}`),
  );
  const toggle = () => {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    if (!isOpen && !inside.firstChild) grow(inside, text, start, members, more, depth);
    button.setAttribute("aria-expanded", String(!isOpen));
    inside.hidden = isOpen;
  };
  button.addEventListener("click", toggle);
  if (depth === 0 || (end - start < OPEN_LETTERS && depth < 4)) toggle();
  return h("div", { class: "branch" }, button, inside);
}

function grow(inside, text, start, members, more, depth) {
  inside.append(...members.map((member) => node(text, member, depth + 1)));
  if (more === null) return;
  const button = h("button", { type: "button", class: "quiet more" }, `Show the next ${AT_A_TIME}`);
  button.addEventListener("click", () => {
    button.remove();
    const next = membersOf(text, start, { from: more, limit: AT_A_TIME });
    grow(inside, text, start, next.members, next.more, depth);
  });
  inside.append(button);
}

function unquoted(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function bytesView(base64) {
  const raw = unbase64(base64);
  if (!raw.length) return h("p", { class: "soft" }, "No bytes: a value, not a tombstone.");
  return choice("Form of the bytes", { Hex: () => hex(raw), Base64: () => piecewise(base64, { tag: "pre" }) });
}

function hex(raw) {
  const lines = h("pre", { class: "hex", tabindex: "0", role: "group", "aria-label": `${bytes(raw.length)} as hex` });
  let at = 0;
  const button = h("button", { type: "button", class: "quiet more", on: { click: () => add() } });
  const add = () => {
    const end = Math.min(raw.length, at + HEX_BYTES);
    const added = [];
    for (; at < end; at += 16) added.push(hexLine(raw, at));
    lines.append(`${added.join("\n")}\n`);
    at = end;
    if (at >= raw.length) return button.remove();
    button.textContent = `Show more: ${count(raw.length - at)} bytes are left`;
  };
  const element = h("div", {}, lines, button);
  add();
  return element;
}

function hexLine(raw, at) {
  const part = [...raw.subarray(at, at + 16)];
  const pairs = part
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join(" ")
    .padEnd(47);
  const letters = part.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
  return `${at.toString(16).padStart(6, "0")}  ${pairs}  ${letters}`;
}

/** The beginning of a value on one line of a list. */
export function previewNode(text, isCut) {
  return h("span", { class: "preview", dir: "auto" }, visible(text), isCut ? "…" : null);
}
