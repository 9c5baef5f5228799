/**
 * What is asked again and again: an answer, when it came, and why there is none. Only while somebody can see the page,
 * and never two at a time.
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
    /** The last answer, which stays when a later one fails: how old it is is in `at`. */
    this.value = null;
    this.at = null;
    /** @type {Refusal|NoAnswer|null} why the last attempt gave nothing */
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

  /** Until the attempt that is under way has ended. */
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
