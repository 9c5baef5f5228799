/**
 * Writing a row: add, edit, delete. A write goes to Kafka and is done when all in-sync replicas have it; then its
 * partition and offset are shown. A JSON value is sent as the text that was typed, so that no number is rounded.
 */

import { NoAnswer, json } from "../api.js";
import { announce, h } from "../dom.js";
import { indented } from "../json_text.js";
import { refusedNote } from "../notes.js";
import { offsetsOf } from "../position.js";
import { encoded } from "../router.js";
import { rowPath } from "../row.js";
import { isolated } from "../visible.js";

const LONG = 200_000;
const FORMS = {
  json: "JSON. null is a value; use Delete to remove the row.",
  string: "Text, as it is. An empty text is a value.",
  bytes: "Bytes as base64.",
  int: "A whole number.",
};
// After one of these errors the write may or may not be in the topic.
const IN_DOUBT = ["cluster_unreachable", "not_enough_replicas", "topic_changed"];
const KEY_FORMS = { string: "text", bytes: "bytes as base64", int: "a whole number", json: "JSON" };

/**
 * @typedef {{verb: string, key: string, partition: number, offset: number, position: string, wasLeft: boolean}} Done
 *   wasLeft: the dialog was closed before the write was done
 */

/**
 * Asks for a value, or for a key and a value, and writes them. Waits for the answer even if the dialog is closed.
 * @returns {Promise<Done|null>} null when nothing was written
 */
export function editRow({ name, codecs, row }) {
  if (!codecs) return Promise.resolve(null);
  const isNew = row === null;
  const key = h("input", {
    id: "edit-key",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": "edit-key-form",
  });
  const value = h("textarea", {
    id: "edit-value",
    spellcheck: "false",
    "aria-describedby": "edit-form",
    dir: codecs.value === "string" ? "auto" : null,
  });
  value.value = row ? typedOf(row, codecs.value) : "";
  return ask({
    title: isNew ? "Add a row" : ["Edit ", isolated(row.key)],
    name: isNew ? "Add a row" : `Edit ${row.key}`,
    button: "Write",
    fields: [
      isNew
        ? [
            h("label", { for: "edit-key" }, "Key"),
            key,
            h(
              "p",
              { id: "edit-key-form", class: "soft small" },
              `${KEY_FORMS[codecs.key]}. An existing row with this key is replaced.`,
            ),
          ]
        : null,
      h("label", { for: "edit-value" }, "Value"),
      value,
      h("p", { id: "edit-form", class: "soft small" }, FORMS[codecs.value]),
    ],
    write: async () => {
      const of = isNew ? key.value : row.key;
      const body = bodyOf(value.value, codecs.value);
      const hasHeaders = row?.headers && !row.isTombstone;
      const ack = await (hasHeaders ? post(name, codecs, row, body) : put(name, codecs, of, body));
      return { verb: "Written", key: of, ...ack };
    },
  });
}

/** Asks for confirmation, and writes the tombstone of a row. @returns {Promise<Done|null>} */
export function deleteRow({ name, codecs, row }) {
  return ask({
    title: ["Delete ", isolated(row.key), "?"],
    name: `Delete ${row.key}?`,
    button: "Delete",
    style: "danger",
    fields: [
      h(
        "p",
        {},
        "This writes a tombstone, which removes the row for every reader of this table. Older values stay in the log until Kafka compacts it.",
      ),
    ],
    write: async () => {
      const ack = await json(rowPath(name, row.key, codecs.key), { method: "DELETE", isAsked: true });
      return { verb: "Deleted", key: row.key, ...ack };
    },
  });
}

function ask({ title, name, button, style = "main", fields, write }) {
  const message = h("div", {});
  const submit = h("button", { type: "submit", class: style }, button);
  const form = h(
    "form",
    {},
    h("h2", {}, title),
    fields,
    message,
    h("div", { class: "buttons" }, submit, h("button", { type: "button", on: { click: () => box.close() } }, "Cancel")),
  );
  const box = h("dialog", { "aria-label": name }, form);
  document.body.append(box);
  /** @type {Promise<Done|null>} */
  let sent = Promise.resolve(null);
  async function send() {
    submit.disabled = true;
    message.replaceChildren(h("p", { class: "soft small", role: "status" }, "Waiting for Kafka …"));
    try {
      const done = await write();
      const wasLeft = !box.open;
      box.close();
      return { ...done, wasLeft };
    } catch (failure) {
      if (!box.open) announce(`${name}: ${isInDoubt(failure) ? "not acknowledged" : "not done"}. ${failure.message}`);
      message.replaceChildren(refusedNote(failure));
      return null;
    } finally {
      submit.disabled = false;
    }
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sent = send();
  });
  return new Promise((resolve) => {
    box.addEventListener("close", () => {
      box.remove();
      resolve(sent);
    });
    box.showModal();
  });
}

const isInDoubt = (failure) => failure instanceof NoAnswer || IN_DOUBT.includes(failure.code);

const put = (name, codecs, key, body) =>
  json(rowPath(name, key, codecs.key), {
    method: "PUT",
    body,
    isAsked: true,
    headers: { "content-type": "application/json" },
  });

/** Writes a value with the headers of the row, as a JSON line: PUT writes a record without headers. */
async function post(name, codecs, row, body) {
  const key = codecs.key === "json" || codecs.key === "int" ? row.key : JSON.stringify(row.key);
  // In JSON a line break is always between two tokens.
  const value = body.replace(/[\r\n]+/g, " ");
  const { position } = await json(`/tables/${encoded(name)}/rows`, {
    method: "POST",
    body: `{"key":${key},"value":${value},"headers":${row.headers}}\n`,
    isAsked: true,
    headers: { "content-type": "application/x-ndjson" },
  });
  const [[partition, next]] = offsetsOf(position);
  return { partition, offset: next - 1, position };
}

/** The text to edit: JSON on several lines with unchanged tokens, or the text itself. */
function typedOf(row, codec) {
  if (row.value === undefined || row.value === null) return "";
  if (codec !== "json") return codec === "int" ? row.value : JSON.parse(row.value);
  return row.value.length > LONG ? row.value : indented(row.value);
}

/** The body to send: the value as JSON, which the API takes for every codec. Throws for a mistake, before anything is sent. */
function bodyOf(typed, codec) {
  if (codec === "string") return JSON.stringify(typed);
  if (codec === "bytes") return JSON.stringify(typed.trim());
  try {
    JSON.parse(typed);
  } catch (failure) {
    throw new Error(
      codec === "int"
        ? "this is not a whole number: write it like 42"
        : `this is not JSON: ${failure.message}. Write text in quotes, like "text".`,
    );
  }
  return typed.trim();
}
