/**
 * The changes that are shown, and those that wait while nobody wants to be disturbed. Both are bounded: when too many wait,
 * the stream is let go, and goes on later after the last one that was taken. So nothing is lost, and nothing piles up.
 */

import { openStream } from "./stream.js";
import { apart, preview, rowOf, valueSize } from "./row.js";

export const MOST_SHOWN = 500;
export const MOST_WAITING = 2000;
// What a filter hides is kept too, so that it is there when the filter is widened.
const MOST_KEPT = 2000;
const LETTERS = 120;

/** @typedef {{id: number, table: string, key: string, isOpaqueKey: boolean, isDelete: boolean, isSwept: boolean, told: string, isCut: boolean, error: string|null, size: number|null, place: string, timestamp: number}} Change */

/** Outlives its view: one who comes back to the changes goes on where he was. */
export class Feed {
  constructor() {
    /** @type {Change[]} the newest first */
    this.shown = [];
    /** @type {Change[]} all that came last, whatever is looked for; the oldest first */
    this.kept = [];
    /** @type {Change[]} the same of what came while it was paused */
    this.waiting = [];
    this.seen = 0;
    this.isPaused = false;
    this.begun = null;
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

  /** Whether the stream was let go because enough is waiting. */
  get isFull() {
    return this.isPaused && this.waiting.length >= MOST_WAITING;
  }

  /** Follows these tables; from where it was, if they are the same. */
  open(tables, codecs) {
    this.codecs = codecs;
    const isSame = this.tables !== null && this.tables.join() === tables.join();
    this.tables = tables;
    if (!isSame) this.at = null;
    this.begun ??= Date.now();
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
        // What came meanwhile can't be read any more: that is said, and it goes on from now.
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
    this.kept.push(...fresh);
    if (this.kept.length > MOST_KEPT) this.kept.splice(0, this.kept.length - MOST_KEPT);
    const wanted = fresh.filter((change) => this.isWanted(change)).reverse();
    if (wanted.length) this.shown = [...wanted, ...this.shown].slice(0, MOST_SHOWN);
  }

  changeOf(text, kind) {
    const row = rowOf(text, (table) => this.codecs.get(table)?.key ?? "string");
    const codec = this.codecs.get(row.table)?.value ?? "json";
    const told = preview(row, codec, LETTERS);
    return {
      id: this.number++,
      table: row.table,
      key: apart(row.key, text),
      isOpaqueKey: row.isOpaqueKey,
      isDelete: kind === "delete",
      isSwept: row.isSwept,
      told: apart(told, text),
      isCut: told.length >= LETTERS,
      error: row.error,
      size: valueSize(row, codec),
      place: `${row.partition}:${row.offset}`,
      timestamp: row.timestamp,
    };
  }

  isWanted({ key, isDelete }) {
    const { text, kind } = this.filter;
    return (kind === "all" || (kind === "delete") === isDelete) && (!text || key.toLowerCase().includes(text));
  }

  setFilter(filter) {
    this.filter = { ...filter, text: filter.text.toLowerCase() };
    const known = new Map([...this.shown, ...this.kept].map((change) => [change.id, change]));
    const wanted = [...known.values()].filter((change) => this.isWanted(change));
    this.shown = wanted.sort((a, b) => b.id - a.id).slice(0, MOST_SHOWN);
  }

  /** How many of those that wait are wanted. */
  get waits() {
    return this.waiting.filter((change) => this.isWanted(change)).length;
  }

  pause() {
    this.isPaused = true;
  }

  /** Shows what has waited, and goes on after it. */
  resume() {
    const wasLetGo = this.stream === null;
    this.isPaused = false;
    this.add(this.waiting);
    this.waiting = [];
    if (wasLetGo) this.listen();
  }

  clear() {
    this.shown = [];
    this.kept = [];
  }
}
