/**
 * The token, which is kept here and nowhere else: not in storage, not in an address, not in the page. A reload asks for
 * it again, and that is the price.
 */

import { h } from "./dom.js";

let token = null;
let asking = null;
let hasDeclined = false;
const listeners = new Set();

export const tokenHeader = () => (token === null ? null : `Bearer ${token}`);
export const isDeclined = () => hasDeclined;

/** Is told when a token was given or declined. */
export function onToken(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Asks the reader for a token; true when there is a new one. Several who need one wait for the same dialog, and one who
 * declined is not asked again until he wants it himself.
 */
export function askForToken({ wasWrong = false, isAsked = false, refusal = null } = {}) {
  if (hasDeclined && !isAsked) return Promise.resolve(false);
  asking ??= dialog(wasWrong, refusal).then((given) => {
    asking = null;
    hasDeclined = given === null;
    if (given !== null) token = given;
    for (const listener of listeners) listener();
    return given !== null;
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
    ? `${refusal?.message ?? "the server does not take this token"}. Give another one.`
    : "This server asks for a token. It is kept in the memory of this page only, and gone with a reload.";
  const form = h(
    "form",
    {},
    h("h2", { id: "token-title" }, "Token needed"),
    h("p", { id: "token-why", class: wasWrong ? "warned" : "soft" }, why),
    // The file is named by the machine itself, to whoever may use it: no path of a server is for strangers.
    h(
      "p",
      { id: "token-where", class: "soft" },
      "The tokens are in a file on the server's machine: of ",
      h("code", {}, "lastword up --secure"),
      ", the one that ",
      h("code", {}, "lastword status"),
      " names; of ",
      h("code", {}, "lastword serve"),
      ", the one of its option ",
      h("code", {}, "--token-file"),
      ". A line there is the word read or write, and then the token.",
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
    let given = null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      given = field.value.trim() || null;
      box.close();
    });
    box.addEventListener("close", () => {
      field.value = "";
      box.remove();
      resolve(given);
    });
    box.showModal();
  });
}
