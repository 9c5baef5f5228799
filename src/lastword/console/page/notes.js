/** Notes in the place of content that is loading, empty, missing or failed: always with a next step. */

import { NoAnswer, Refusal } from "./api.js";
import { h } from "./dom.js";
import { askForToken } from "./token.js";

/** @param {"loading"|"empty"|"missing"|"deleted"|"absent"|"error"} kind */
export function note(kind, title, ...more) {
  return h(
    "div",
    { class: `note note-${kind}`, "data-state-note": kind, "aria-busy": kind === "loading" ? "true" : null },
    h("p", { class: "note-title" }, title),
    more.length ? h("p", { class: "soft" }, ...more) : null,
  );
}

export const loading = (what) => note("loading", `Reading ${what} …`);

/** Why something is not there, in the words of the server if it gave a reason. */
export function problemNote(problem, what) {
  if (problem instanceof NoAnswer)
    return note("error", `${what}: not known yet`, "The server does not answer. The page tries again by itself.");
  if (!(problem instanceof Refusal)) return note("error", `${what}: error in this page`, String(problem));
  if (problem.status === 401) {
    return h(
      "div",
      { class: "note note-error", "data-state-note": "error" },
      h("p", { class: "note-title" }, `${what}: this needs a token`),
      h(
        "button",
        { type: "button", class: "main", on: { click: () => askForToken({ isAsked: true }) } },
        "Enter a token",
      ),
    );
  }
  return note(
    problem.status === 404 ? "absent" : "error",
    `${what}: ${problem.message}`,
    problem.hint || "The page tries again by itself.",
  );
}

/** A refusal of something that a person asked for. */
export function refusedNote(problem) {
  const isSilence = problem instanceof NoAnswer;
  const code = problem instanceof Refusal ? problem.code : isSilence ? "no_answer" : "not_sent";
  const hint = isSilence ? "The write may still have succeeded: check before you send it again." : problem.hint;
  return h(
    "div",
    { class: "refused", role: "alert", "data-refused": code },
    h("p", {}, h("b", {}, "Not done: "), problem.message),
    hint ? h("p", { class: "small" }, hint) : null,
    code === "forbidden" || code === "unauthorized"
      ? h(
          "button",
          { type: "button", on: { click: () => askForToken({ isAsked: true, wasWrong: true, refusal: problem }) } },
          "Use another token",
        )
      : null,
  );
}
