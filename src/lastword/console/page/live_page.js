/**
 * A page of a table that stays up to date: the rows that were read, and every later change between its first and its last
 * key. It remembers what changed since the last drawing.
 */

import { compareBytes, keyBytes } from "./row.js";

// New rows between the keys of the page make it longer, up to this length.
const MOST_ROWS = 150;

export class LivePage {
  /**
   * @param {{rows: import("./row.js").Row[], next: string|null}} answer
   * @param {{codec: string, query: {prefix: string|null, start: string|null, cursor: string|null}}} asked
   */
  constructor({ rows, next }, { codec, query }) {
    this.codec = codec;
    this.next = next;
    this.rows = rows;
    this.isMoved = false;
    this.lit = new Set();
    this.gone = new Set();
    this.places = new Map(rows.map((row) => [row.key, keyBytes(row, codec)]));
    const text = (key) => keyBytes({ key, isOpaqueKey: false }, codec);
    this.prefix = query.prefix ? text(query.prefix) : null;
    // After a cursor the page starts at its first row; if another page follows, it ends at its last row.
    this.first = query.cursor
      ? rows.length
        ? this.places.get(rows[0].key)
        : null
      : query.start
        ? text(query.start)
        : null;
    this.last = next === null || !rows.length ? null : this.places.get(rows.at(-1).key);
  }

  get hasLeaving() {
    return this.gone.size > 0;
  }

  find(key) {
    return this.rows.find((row) => row.key === key) ?? null;
  }

  /** Applies a change. */
  apply(change) {
    if (!this.places.has(change.key)) {
      if (!change.isTombstone) this.insert(change);
      return;
    }
    const at = this.rows.findIndex((row) => row.key === change.key);
    const before = this.rows[at];
    // A page may be newer than its position, so it may already contain the change.
    if (before.partition === change.partition && before.offset >= change.offset) return;
    if (change.isTombstone) {
      this.rows.splice(at, 1);
      this.places.delete(change.key);
      this.lit.delete(change.key);
      this.gone.add(change.key);
    } else {
      this.rows[at] = change;
      this.lit.add(change.key);
    }
  }

  insert(change) {
    const place = keyBytes(change, this.codec);
    if (!this.holds(place)) return;
    if (this.rows.length >= MOST_ROWS) {
      this.isMoved = true;
      return;
    }
    let low = 0,
      high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareBytes(this.places.get(this.rows[middle].key), place) < 0) low = middle + 1;
      else high = middle;
    }
    this.rows.splice(low, 0, change);
    this.places.set(change.key, place);
    this.gone.delete(change.key);
    this.lit.add(change.key);
  }

  holds(place) {
    if (this.prefix && !this.prefix.every((byte, at) => place[at] === byte)) return false;
    if (this.first && compareBytes(place, this.first) < 0) return false;
    return !this.last || compareBytes(place, this.last) <= 0;
  }

  /** Called after the drawing. */
  settle() {
    this.lit.clear();
    this.gone.clear();
  }
}
