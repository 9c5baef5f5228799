/**
 * Writing a row: add, edit, delete. A write goes to Kafka and is done when all in-sync replicas have it; the place where it
 * stands is told. A JSON value is sent as the text that was typed, so that no number of it is rounded.
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
  json: "JSON. null is a value: to remove the row, delete it.",
  string: "Text, as it is. An empty text is a value.",
  bytes: "Bytes as base64.",
  int: "A whole number.",
};
// After one of these nobody knows whether the write is in the topic.
const IN_DOUBT = ["cluster_unreachable", "not_enough_replicas", "topic_changed"];
const KEY_FORMS = { string: "text", bytes: "bytes as base64", int: "a whole number", json: "JSON" };

/**
 * @typedef {{verb: string, key: string, partition: number, offset: number, position: string, wasLeft: boolean}} Done
 *   wasLeft: the dialog was closed before the write was done
 */

/**
 * Asks for a value, or for a key and a value, and writes them. A write that was sent is waited for, also by a dialog that is closed.
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
              `${KEY_FORMS[codecs.key]}. A row of this key is replaced.`,
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
      const told = await (hasHeaders ? post(name, codecs, row, body) : put(name, codecs, of, body));
      return { verb: "Written", key: of, ...told };
    },
  });
}

/** Asks whether a row should go, and writes its tombstone. @returns {Promise<Done|null>} */
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
        "A tombstone is written, and the row is gone for every reader of this table. Its older values stay in the log until Kafka compacts it.",
      ),
    ],
    write: async () => {
      const told = await json(rowPath(name, row.key, codecs.key), { method: "DELETE", isAsked: true });
      return { verb: "Deleted", key: row.key, ...told };
    },
  });
}

function ask({ title, name, button, style = "main", fields, write }) {
  const said = h("div", {});
  const submit = h("button", { type: "submit", class: style }, button);
  const form = h(
    "form",
    {},
    h("h2", {}, title),
    fields,
    said,
    h("div", { class: "buttons" }, submit, h("button", { type: "button", on: { click: () => box.close() } }, "Cancel")),
  );
  const box = h("dialog", { "aria-label": name }, form);
  document.body.append(box);
  /** @type {Promise<Done|null>} */
  let sent = Promise.resolve(null);
  async function send() {
    submit.disabled = true;
    said.replaceChildren(h("p", { class: "soft small", role: "status" }, "Waiting for Kafka …"));
    try {
      const done = await write();
      const wasLeft = !box.open;
      box.close();
      return { ...done, wasLeft };
    } catch (failure) {
      if (!box.open) announce(`${name}: ${isInDoubt(failure) ? "not acknowledged" : "not done"}. ${failure.message}`);
      said.replaceChildren(refusedNote(failure));
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

/** Writes a value with the headers that the row has, as a line: PUT writes a record without headers. */
async function post(name, codecs, row, body) {
  const key = codecs.key === "json" || codecs.key === "int" ? row.key : JSON.stringify(row.key);
  // Line breaks stand only between the tokens of a JSON text.
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

/** What a person edits: JSON on several lines with the tokens as they were, or the text itself. */
function typedOf(row, codec) {
  if (row.value === undefined || row.value === null) return "";
  if (codec !== "json") return codec === "int" ? row.value : JSON.parse(row.value);
  return row.value.length > LONG ? row.value : indented(row.value);
}

/** What is sent: the value as JSON, in which the API takes every codec. A mistake is said here, before anything is sent. */
function bodyOf(typed, codec) {
  if (codec === "string") return JSON.stringify(typed);
  if (codec === "bytes") return JSON.stringify(typed.trim());
  try {
    JSON.parse(typed);
  } catch (failure) {
    throw new Error(
      codec === "int"
        ? "this is not a whole number"
        : `this is not JSON: ${failure.message}. Text stands in quotes, like "text".`,
    );
  }
  return typed.trim();
}
