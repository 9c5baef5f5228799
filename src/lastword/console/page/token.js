/**
 * The token, which is kept only here: not in storage, not in an address, not in the page. So a reload asks for it again.
 */

import { h } from "./dom.js";

let token = null;
let asking = null;
let hasDeclined = false;
const listeners = new Set();

export const tokenHeader = () => (token === null ? null : `Bearer ${token}`);
export const isDeclined = () => hasDeclined;

/** Calls `listener` when the reader has entered a token or declined. */
export function onToken(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Asks the reader for a token; true when there is a new one. Several requests wait for the same dialog, and a reader who
 * declined is not asked again until he asks for it.
 */
export function askForToken({ wasWrong = false, isAsked = false, refusal = null } = {}) {
  if (hasDeclined && !isAsked) return Promise.resolve(false);
  asking ??= dialog(wasWrong, refusal).then((entered) => {
    asking = null;
    hasDeclined = entered === null;
    if (entered !== null) token = entered;
    for (const listener of listeners) listener();
    return entered !== null;
  });
  return asking;
}

function dialog(wasWrong, refusal) {
  const field = h("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": "token-why token-where",
  });
  const why = wasWrong
    ? `${refusal?.message ?? "the server does not accept this token"}. Enter another one.`
    : "This server requires a token. It is kept only in the memory of this page, until a reload.";
  const form = h(
    "form",
    {},
    h("h2", { id: "token-title" }, "Token needed"),
    h("p", { id: "token-why", class: wasWrong ? "warned" : "soft" }, why),
    // The path of the file is not shown: paths of a server are not for strangers.
    h(
      "p",
      { id: "token-where", class: "soft" },
      "The tokens are in a file on the server's machine. For ",
      h("code", {}, "lastword up --secure"),
      ", ",
      h("code", {}, "lastword status"),
      " names the file; for ",
      h("code", {}, "lastword serve"),
      ", it is the file of ",
      h("code", {}, "--token-file"),
      ". Each line has the word read or write, and then the token.",
    ),
    h("label", { for: "token" }, "Token"),
    field,
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "submit", class: "main" }, "Use token"),
      h("button", { type: "button", on: { click: () => box.close() } }, "Cancel"),
    ),
  );
  const box = h("dialog", { "aria-labelledby": "token-title" }, form);
  document.body.append(box);
  return new Promise((resolve) => {
    let entered = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      entered = field.value.trim() || null;
      box.close();
    });
    box.addEventListener("close", () => {
      field.value = "";
      box.remove();
      resolve(entered);
    });
    box.showModal();
  });
}
