/**
 * The changes that are shown, and those that wait while the feed is paused. Both are bounded: when too many wait, the
 * stream is closed, and continues later after the last change that was read. So nothing is lost, and memory is bounded.
 */

import { openStream } from "./stream.js";
import { apart, preview, rowOf, valueSize } from "./row.js";

export const MOST_SHOWN = 500;
export const MOST_WAITING = 2000;
// Changes that the filter hides are kept too, for when the filter is widened.
const MOST_RECENT = 2000;
const LETTERS = 120;

/** @typedef {{id: number, table: string, key: string, isOpaqueKey: boolean, isDelete: boolean, isSwept: boolean, beginning: string, isCut: boolean, error: string|null, size: number|null, place: string, timestamp: number}} Change */

/** Outlives its view: a reader who returns to the changes continues there. */
export class Feed {
  constructor() {
    /** @type {Change[]} the newest first */
    this.changes = [];
    /** @type {Change[]} the last changes, whatever the filter; the oldest first */
    this.recent = [];
    /** @type {Change[]} the changes since the pause; the oldest first */
    this.waiting = [];
    this.seen = 0;
    this.isPaused = false;
    this.openedAt = null;
    this.filter = { text: "", kind: "all" };
    this.tables = null;
    this.at = null;
    this.stream = null;
    this.state = null;
    this.hadGap = null;
    this.number = 0;
    this.codecs = new Map();
    this.onNews = () => {};
    this.onState = () => {};
  }

  /** Whether the stream was closed because enough changes wait. */
  get isFull() {
    return this.isPaused && this.waiting.length >= MOST_WAITING;
  }

  /** Follows these tables; continues at the last position if they are the same. */
  open(tables, codecs) {
    this.codecs = codecs;
    const isSame = this.tables !== null && this.tables.join() === tables.join();
    this.tables = tables;
    if (!isSame) this.at = null;
    this.openedAt ??= Date.now();
    this.listen();
  }

  listen() {
    this.stream?.close();
    this.stream = openStream({
      path: `/changes?tables=${this.tables.map(encodeURIComponent).join(",")}`,
      after: this.at,
      onState: (state) => {
        this.state = state;
        this.onState(state);
      },
      onGone: () => {
        // The changes since the last position can't be read any more: note the gap, and continue from now.
        this.hadGap = Date.now();
        this.at = null;
        this.listen();
        this.onNews();
      },
      onEvents: (events) => this.take(events),
    });
  }

  close() {
    if (this.stream) this.at = this.stream.id;
    this.stream?.close();
    this.stream = null;
  }

  take(events) {
    const fresh = [];
    for (const event of events) {
      this.at = event.id ?? this.at;
      if (event.kind === "reset") {
        this.hadGap = Date.now();
        continue;
      }
      this.seen++;
      (this.isPaused ? this.waiting : fresh).push(this.changeOf(event.text, event.kind));
    }
    this.add(fresh);
    if (this.isFull) this.close();
    this.onNews();
  }

  /** Shows changes, given with the oldest first. */
  add(fresh) {
    this.recent.push(...fresh);
    if (this.recent.length > MOST_RECENT) this.recent.splice(0, this.recent.length - MOST_RECENT);
    const matching = fresh.filter((change) => this.matches(change)).reverse();
    if (matching.length) this.changes = [...matching, ...this.changes].slice(0, MOST_SHOWN);
  }

  changeOf(text, kind) {
    const row = rowOf(text, (table) => this.codecs.get(table)?.key ?? "string");
    const codec = this.codecs.get(row.table)?.value ?? "json";
    const beginning = preview(row, codec, LETTERS);
    return {
      id: this.number++,
      table: row.table,
      key: apart(row.key, text),
      isOpaqueKey: row.isOpaqueKey,
      isDelete: kind === "delete",
      isSwept: row.isSwept,
      beginning: apart(beginning, text),
      isCut: beginning.length >= LETTERS,
      error: row.error,
      size: valueSize(row, codec),
      place: `${row.partition}:${row.offset}`,
      timestamp: row.timestamp,
    };
  }

  matches({ key, isDelete }) {
    const { text, kind } = this.filter;
    return (kind === "all" || (kind === "delete") === isDelete) && (!text || key.toLowerCase().includes(text));
  }

  setFilter(filter) {
    this.filter = { ...filter, text: filter.text.toLowerCase() };
    const all = new Map([...this.changes, ...this.recent].map((change) => [change.id, change]));
    const matching = [...all.values()].filter((change) => this.matches(change));
    this.changes = matching.sort((a, b) => b.id - a.id).slice(0, MOST_SHOWN);
  }

  /** The number of waiting changes that match the filter. */
  get waits() {
    return this.waiting.filter((change) => this.matches(change)).length;
  }

  pause() {
    this.isPaused = true;
  }

  /** Shows the waiting changes, and continues after them. */
  resume() {
    const wasClosed = this.stream === null;
    this.isPaused = false;
    this.add(this.waiting);
    this.waiting = [];
    if (wasClosed) this.listen();
  }

  clear() {
    this.changes = [];
    this.recent = [];
  }
}
