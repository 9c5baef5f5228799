/**
 * Requests to the server: adds the token, knows the error shape, and tracks whether the server answers. The page
 * distinguishes a refusal (the server answered with an error) from no answer.
 */

import { learnClock } from "./format.js";
import { askForToken, tokenHeader } from "./token.js";

const PATIENCE_MS = 12000;
// A write waits for its acknowledgement; the server itself reports when there is none.
const WRITE_PATIENCE_MS = 90000;

/** The server answered with an error: `code` and `hint` are the server's. */
export class Refusal extends Error {
  constructor(status, { code = "unknown", message = `the server answered ${status}`, hint = "" } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** The server did not answer. */
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
 * The response to a request, with an unread body; throws Refusal, NoAnswer, or AbortError when `signal` is aborted.
 * A 401 asks the reader for a token, once, and then tries again.
 * @param {string} path
 * @param {{method?: string, body?: string, headers?: Record<string, string>, signal?: AbortSignal, isAsked?: boolean}} [options]
 *   isAsked: the reader asked for this, so a reader who declined to enter a token is asked again
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
      // One late answer does not mean that the server is down, if it answers others.
      if (!isLate || Date.now() - (link.lastAnswer ?? 0) > PATIENCE_MS / 2) unanswered();
      throw new NoAnswer("the server does not answer", { cause: failure });
    }
    answered();
    learnClock(response.headers.get("date"));
    if (response.ok || response.status === 304) return response;
    const refusal = new Refusal(response.status, await errorIn(response));
    if (refusal.status !== 401) throw refusal;
    // Another request may have got a token meanwhile.
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

/** The text of an answer, with a time limit. */
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
