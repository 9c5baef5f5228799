/** A row as the server sends it, with an unchanged value; its key as it is shown, compared and addressed. */

import { fieldsOf, membersOf } from "./json_text.js";
import { encoded } from "./router.js";

const encoder = new TextEncoder();
// A slice of a text longer than this is copied.
const LONG = 65536;

/**
 * @typedef {{table: string|null, key: string, isOpaqueKey: boolean, value: string|null, isTombstone: boolean,
 *   raw: string|null, error: string|null, partition: number, offset: number, timestamp: number, headers: string|null,
 *   isSwept: boolean}} Row
 *   isOpaqueKey: the codec can't read the key, so it is shown as base64 and has no address; value: JSON text; raw: base64 of a value that can't be read;
 *   headers: JSON text, null for a record without headers
 */

/**
 * @param {(table: string|null) => string} keyCodecOf
 * @returns {Row}
 */
export function rowOf(text, keyCodecOf) {
  const fields = fieldsOf(text);
  const table = fields.table === undefined ? null : JSON.parse(fields.table);
  const isOpaqueKey = fields.key === undefined;
  // A key that is JSON is shown and addressed as such, its quotes included.
  const isText = !isOpaqueKey && fields.key.startsWith('"') && keyCodecOf(table) !== "json";
  return {
    table,
    key: isOpaqueKey ? JSON.parse(fields.key_base64) : isText ? JSON.parse(fields.key) : fields.key,
    isOpaqueKey,
    value: fields.value ?? null,
    isTombstone: fields.tombstone === "true",
    raw: fields.value_base64 === undefined ? null : JSON.parse(fields.value_base64),
    error: fields.decode_error === undefined ? null : JSON.parse(fields.decode_error),
    partition: Number(fields.partition),
    offset: Number(fields.offset),
    timestamp: Number(fields.timestamp),
    headers: fields.headers ?? null,
    isSwept: fields.swept === "true",
  };
}

/** @returns {{rows: Row[], next: string|null, position: string}} */
export function pageOf(text, keyCodec) {
  const fields = fieldsOf(text);
  const rows = membersOf(fields.rows, 0).members.map(({ start, end }) =>
    rowOf(fields.rows.slice(start, end), () => keyCodec),
  );
  return { rows, next: JSON.parse(fields.next), position: JSON.parse(fields.position) };
}

/** The address of a row in the API. */
export function rowPath(table, key, codec) {
  const keyText = codec === "bytes" ? key.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "") : key;
  return `/tables/${encoded(table)}/rows/${encoded(keyText)}`;
}

/** The bytes of a key: a table is in their order. */
export function keyBytes(row, codec) {
  if (row.isOpaqueKey || codec === "bytes") return unbase64(row.key);
  if (codec !== "int") return encoder.encode(row.key);
  const raw = new DataView(new ArrayBuffer(8));
  raw.setBigInt64(0, BigInt(row.key));
  return new Uint8Array(raw.buffer);
}

export function compareBytes(a, b) {
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at++) if (a[at] !== b[at]) return a[at] - b[at];
  return a.length - b.length;
}

export function unbase64(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** The size of a row's value in bytes; null for a tombstone. */
export function valueSize(row, codec) {
  if (row.isTombstone) return null;
  if (row.raw !== null) return sizeOfBase64(row.raw);
  if (codec === "bytes") return sizeOfBase64(JSON.parse(row.value));
  if (codec === "int") return 8;
  return encoder.encode(codec === "string" ? JSON.parse(row.value) : row.value).length;
}

const sizeOfBase64 = (text) => Math.floor((text.replace(/=+$/, "").length * 3) / 4);

/** The beginning of a value on one line. */
export function preview(row, codec, letters = 200) {
  if (row.isTombstone) return "";
  if (row.raw !== null) return row.raw.slice(0, letters);
  if (codec === "json" || codec === "int") return row.value.slice(0, letters);
  const inner = row.value.slice(0, letters * 6);
  return inner.length === row.value.length ? JSON.parse(inner).slice(0, letters) : inner.slice(1, letters + 1);
}

/** A copy of the text: a slice of a long text would keep all of it in memory. */
export function apart(text, of) {
  return of.length > LONG ? text.split("").join("") : text;
}
