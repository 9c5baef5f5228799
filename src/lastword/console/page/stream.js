/**
 * The change stream of the page: server-sent events, read with fetch so that the token travels in a header. It reconnects
 * by itself and continues after the last event. A thousand events per second are read in slices, so that the browser
 * can respond to its user in between.
 */

import { Refusal, answered, isAborted, onLink, request, unanswered } from "./api.js";
import { breath } from "./paint.js";
import { onToken } from "./token.js";

const SLICE_MS = 8;
const LONGEST_WAIT_MS = 10000;
// The server sends something every 15 seconds.
const SILENCE_MS = 40000;

/** @typedef {{kind: string, text: string, id: string|null}} StreamEvent */

let open = null;

/**
 * Opens a stream, and ends the one that was open.
 * @param {{path: string, after?: string|null,
 *   onEvents: (events: StreamEvent[]) => void,
 *   onState: (state: {name: "opening"|"live"|"lost"|"refused", why: string|null, refusal: Refusal|null}) => void,
 *   onGone: () => void}} options
 *   onGone: the changes since the last event are lost: read the rows again, and open a new stream
 */
export function openStream(options) {
  open?.close();
  const stream = new Stream(options);
  open = stream;
  stream.run();
  return stream;
}

class Stream {
  constructor({ path, after = null, onEvents, onState, onGone }) {
    this.path = path;
    /** The last event: the stream continues after it. */
    this.id = after;
    this.onEvents = onEvents;
    this.onState = onState;
    this.onGone = onGone;
    this.ending = new AbortController();
    this.wait = 0;
  }

  close() {
    this.ending.abort();
    if (open === this) open = null;
  }

  get isClosed() {
    return this.ending.signal.aborted;
  }

  async run() {
    while (!this.isClosed) {
      this.report("opening");
      try {
        await this.read();
        this.report("lost", "the stream ended");
      } catch (failure) {
        if (this.isClosed) return;
        if (failure instanceof Refusal) {
          if (isGone(failure)) {
            this.id = null;
            this.onGone();
            return;
          }
          const isFinal = failure.status < 500 && failure.status !== 408;
          this.report(isFinal ? "refused" : "lost", failure.message, failure);
          if (failure.status === 401) {
            await this.token();
            continue;
          }
          if (isFinal) return;
        } else {
          if (!isAborted(failure)) unanswered();
          this.report("lost", "the server does not answer");
        }
      }
      await this.pause();
    }
  }

  report(name, why = null, refusal = null) {
    if (!this.isClosed) this.onState({ name, why, refusal });
  }

  /** Waits longer each time, with some randomness; ends at once when the network is back. */
  pause() {
    this.wait = Math.min(LONGEST_WAIT_MS, this.wait ? this.wait * 2 : 500);
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        forget();
        removeEventListener("online", done);
        this.ending.signal.removeEventListener("abort", done);
        resolve(undefined);
      };
      const timer = setTimeout(done, this.wait * (0.75 + Math.random() / 2));
      // Another request was answered: the server is back.
      const forget = onLink((link) => link.state === "live" && done());
      addEventListener("online", done);
      this.ending.signal.addEventListener("abort", done);
    });
  }

  /** Waits until the reader has entered a token, or the stream is closed. */
  token() {
    return new Promise((resolve) => {
      const forget = onToken(() => {
        forget();
        resolve(undefined);
      });
      this.ending.signal.addEventListener("abort", () => {
        forget();
        resolve(undefined);
      });
    });
  }

  async read() {
    // A connection may die without an error.
    const silence = new AbortController();
    const headers = { accept: "text/event-stream", ...(this.id ? { "last-event-id": this.id } : {}) };
    const response = await request(this.path, {
      headers,
      signal: AbortSignal.any([this.ending.signal, silence.signal]),
    });
    this.report("live");
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const events = new Events();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        answered();
        events.add(decoder.decode(value, { stream: true }));
        await this.pass(events);
      }
    } finally {
      clearTimeout(timer);
      reader.cancel().catch(() => {});
    }
  }

  /** Passes complete events on. Nothing is read meanwhile, so a slow page reads slowly and does not fill its memory. */
  async pass(events) {
    for (;;) {
      const until = performance.now() + SLICE_MS;
      const batch = [];
      let cut = null;
      for (let event = events.next(); event; event = performance.now() < until ? events.next() : null) {
        if (event.id !== null) this.id = event.id;
        if (event.kind === "cut") cut = event;
        else if (event.text) batch.push(event);
      }
      if (this.isClosed) return;
      if (batch.length) {
        this.wait = 0;
        this.onEvents(batch);
      }
      if (cut) throw refusalIn(cut.text);
      if (!events.hasMore) return;
      await breath();
      if (this.isClosed) return;
    }
  }
}

/** The received text of a stream, as events. */
class Events {
  constructor() {
    this.text = "";
    this.at = 0;
    this.searched = 0;
    this.hasMore = false;
  }

  add(text) {
    this.text = this.text.slice(this.at) + text;
    // The end of an event may be split over two pieces. Searched text is not searched again: a large value would cost its square.
    this.searched = Math.max(0, this.searched - this.at - 1);
    this.at = 0;
  }

  /** @returns {StreamEvent|null} null when no whole event is left */
  next() {
    const end = this.text.indexOf("\n\n", Math.max(this.at, this.searched));
    this.hasMore = end >= 0;
    if (end < 0) {
      this.searched = this.text.length;
      return null;
    }
    const event = { kind: "message", text: "", id: null };
    for (const line of this.text.slice(this.at, end).split("\n")) {
      if (line.startsWith("data: ")) event.text = line.slice(6);
      else if (line.startsWith("id: ")) event.id = line.slice(4);
      else if (line.startsWith("event: ")) event.kind = line.slice(7);
    }
    this.at = end + 2;
    this.searched = this.at;
    return event;
  }
}

/** Whether the stream can't continue: the log no longer has the position, or the position is not one of these tables. */
const isGone = (refusal) => refusal.code === "position_gone" || refusal.code === "bad_position";

function refusalIn(text) {
  try {
    return new Refusal(503, JSON.parse(text).error);
  } catch {
    return new Refusal(503);
  }
}
