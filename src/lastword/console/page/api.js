/**
 * Asking the server: one place that adds the token, knows the one error shape, and learns whether the server answers.
 * A refusal (it answered, and said no) and silence (it did not answer) are different things to the reader of the page.
 */

import { learnClock } from "./format.js";
import { askForToken, tokenHeader } from "./token.js";

const PATIENCE_MS = 12000;
// A write waits for its acknowledgement, and the server says itself when none comes.
const WRITE_PATIENCE_MS = 90000;

/** The server said no: `code` and `hint` are its own words. */
export class Refusal extends Error {
  constructor(status, { code = "unknown", message = `the server answered ${status}`, hint = "" } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** Nobody answered. */
export class NoAnswer extends Error {}

/** Whether the server answers: `state` is "waiting" before the first answer, then "live" or "lost". */
export const link = { state: "waiting", lastAnswer: null, lostSince: null };
const listeners = new Set();

export function onLink(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function answered() {
  link.lastAnswer = Date.now();
  change("live", null);
}

export function unanswered() {
  change("lost", link.lostSince ?? Date.now());
}

function change(state, lostSince) {
  const isNew = link.state !== state;
  link.state = state;
  link.lostSince = lostSince;
  if (isNew) for (const listener of listeners) listener(link);
}

/**
 * The response to a request, whose body is yet to be read; throws Refusal, NoAnswer, or AbortError when `signal` says so.
 * A 401 asks the reader for a token, once, and then tries again.
 * @param {string} path
 * @param {{method?: string, body?: string, headers?: Record<string, string>, signal?: AbortSignal, isAsked?: boolean}} [options]
 *   isAsked: a person has asked for this, so that one who declined to give a token is asked again
 */
export async function request(path, { method = "GET", body, headers = {}, signal, isAsked = false } = {}) {
  let wasWrong = tokenHeader() !== null;
  for (;;) {
    const sent = tokenHeader();
    let response;
    try {
      response = await fetch(path, {
        method,
        body,
        signal,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        headers: { ...headers, ...(sent ? { authorization: sent } : {}) },
      });
    } catch (failure) {
      const isLate = signal?.reason?.name === "TimeoutError";
      if (signal?.aborted && !isLate) throw failure;
      // One answer that does not come in time says nothing about a server that answers others.
      if (!isLate || Date.now() - (link.lastAnswer ?? 0) > PATIENCE_MS / 2) unanswered();
      throw new NoAnswer("the server does not answer", { cause: failure });
    }
    answered();
    learnClock(response.headers.get("date"));
    if (response.ok || response.status === 304) return response;
    const refusal = new Refusal(response.status, await errorIn(response));
    if (refusal.status !== 401) throw refusal;
    // Somebody else's request may have brought a token meanwhile.
    if (tokenHeader() !== sent) continue;
    if (!(await askForToken({ wasWrong, isAsked, refusal }))) throw refusal;
    wasWrong = true;
  }
}

async function errorIn(response) {
  try {
    const { error } = await response.json();
    return typeof error === "string" ? { message: error } : error;
  } catch {
    return {};
  }
}

/** The text of an answer, within a time. */
export async function text(path, { signal, ...options } = {}) {
  const limit = AbortSignal.timeout(options.method ? WRITE_PATIENCE_MS : PATIENCE_MS);
  const both = signal ? AbortSignal.any([signal, limit]) : limit;
  const response = await request(path, { ...options, signal: both });
  try {
    return await response.text();
  } catch (failure) {
    if (signal?.aborted) throw failure;
    unanswered();
    throw new NoAnswer("the answer broke off", { cause: failure });
  }
}

export async function json(path, options) {
  return JSON.parse(await text(path, options));
}

export const isAborted = (failure) => failure?.name === "AbortError";
