/**
 * Text that hides nothing: invisible characters are shown as signs, and so are characters that change the direction of
 * text. So a value can't look like another one.
 */

import { h } from "./dom.js";

// Controls but for tab and line ends, invisible space, marks of direction. Joiners stay: emoji and some scripts need them.
const HIDDEN =
  /([\u0000-\u0008\u000b-\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb])\1*/g;
const PIECE = 4000;
const NAMES =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(
    " ",
  );

/** The text as nodes. */
export function visible(text) {
  const nodes = document.createDocumentFragment();
  let at = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > at) nodes.append(text.slice(at, match.index));
    nodes.append(sign(match[0]));
    at = match.index + match[0].length;
  }
  if (at < text.length) nodes.append(text.slice(at));
  return nodes;
}

function sign(run) {
  const code = run.codePointAt(0);
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const shape = NAMES[code] ?? (code === 127 ? "DEL" : name);
  return h("span", { class: "sign", title: name }, run.length > 1 ? `${shape}×${run.length}` : shape);
}

/** A key, or another short foreign text, in its own direction. */
export function isolated(text, props = {}) {
  return h("bdi", props, text.trim() === "" ? blank(text) : visible(text));
}

/** A blank name is shown as a sign, so that it can be seen and clicked. */
function blank(text) {
  return h("span", { class: "sign" }, text === "" ? "empty" : text.length > 1 ? `blank×${text.length}` : "blank");
}

/** A long text: its beginning, and a button that shows more. */
export function piecewise(text, { piece = PIECE, tag = "span", props = {} } = {}) {
  const element = h(tag, { dir: "auto", ...props });
  let at = 0;
  const button = h("button", { type: "button", class: "quiet more", on: { click: () => add() } });
  const add = () => {
    let end = Math.min(text.length, at + piece);
    // Not between the two halves of one character.
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1])) end++;
    element.insertBefore(visible(text.slice(at, end)), button.parentNode === element ? button : null);
    at = end;
    if (at >= text.length) return button.remove();
    button.textContent = `Show more: ${(text.length - at).toLocaleString("en")} characters are left`;
    element.append(button);
  };
  add();
  return element;
}
