/**
 * A request that is repeated: its last answer, the time of that answer, and the last problem. It is repeated only while
 * the page is visible, and never twice at a time.
 */

import { NoAnswer, Refusal, isAborted, json, onLink } from "./api.js";
import { onToken } from "./token.js";

const EVERY_MS = 2000;
const ABSENT_EVERY_MS = 30000;

export class Poll {
  /**
   * @param {string} path
   * @param {(poll: Poll) => void} onNews
   * @param {{every?: number}} [options]
   */
  constructor(path, onNews, { every = EVERY_MS } = {}) {
    this.path = path;
    this.onNews = onNews;
    this.every = every;
    /** The last answer, which stays when a later request fails; `at` is its time. */
    this.value = null;
    this.at = null;
    /** @type {Refusal|NoAnswer|null} why the last attempt failed */
    this.problem = null;
    this.ending = new AbortController();
    this.timer = null;
    this.isAsking = false;
    /** @type {Promise<void>|null} */
    this.attempt = null;
    const ask = () => this.ask();
    document.addEventListener("visibilitychange", ask, { signal: this.ending.signal });
    this.forget = [onLink((link) => link.state === "live" && this.problem instanceof NoAnswer && ask()), onToken(ask)];
    this.ask();
  }

  close() {
    this.ending.abort();
    for (const forget of this.forget) forget();
    clearTimeout(this.timer);
  }

  /** The server has no such route, or no such thing. */
  get isAbsent() {
    return this.problem instanceof Refusal && this.problem.status === 404;
  }

  get isFresh() {
    return this.problem === null && this.at !== null && Date.now() - this.at < this.every * 3 + 2000;
  }

  ask() {
    if (!this.isAsking && !this.ending.signal.aborted && !document.hidden) this.attempt = this.asking();
  }

  /** Waits for the end of the running attempt. */
  async asked() {
    await this.attempt;
  }

  async asking() {
    this.isAsking = true;
    clearTimeout(this.timer);
    try {
      this.value = await json(this.path, { signal: this.ending.signal });
      this.at = Date.now();
      this.problem = null;
    } catch (failure) {
      if (isAborted(failure)) return;
      this.problem = failure;
      if (this.isAbsent) this.value = null;
    } finally {
      this.isAsking = false;
    }
    if (this.ending.signal.aborted) return;
    this.timer = setTimeout(() => this.ask(), this.isAbsent ? ABSENT_EVERY_MS : this.every);
    this.onNews(this);
  }
}
