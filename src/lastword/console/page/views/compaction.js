/** Compaction on demand: what it does, its progress, and its result. */

import { json } from "../api.js";
import { announce, fill, h, setAttribute, setText } from "../dom.js";
import { bytes, count, isKnown, lasting, now, share, since } from "../format.js";
import { refusedNote } from "../notes.js";
import { card, figure } from "../parts.js";

const STEPS = {
  look: "reading the settings",
  count: "counting the records",
  journal: "saving the settings to put them back later",
  alter: "changing settings temporarily",
  nudge: "closing the open segments",
  abort: "closing the open segments",
  wait: "waiting for Kafka's cleaner",
  restore: "putting the settings back",
  forget: "putting the settings back",
  recount: "counting the remaining records",
};

/** @param {{isLocal: () => boolean|null, onAsked: () => void}} how */
export function compactionPart(name, { isLocal, onAsked }) {
  const button = h("button", { type: "button", class: "main", on: { click: compact } }, "Compact now");
  const why = h("p", { class: "soft small" });
  const message = h("div", { "aria-live": "polite" });
  const result = h("div", {});
  const element = card(
    "Compaction",
    h(
      "p",
      {},
      "Kafka compacts a topic from time to time. This makes it compact now: settings are changed, and then put back.",
    ),
    h("div", { class: "buttons" }, button),
    why,
    message,
    result,
  );
  let isSending = false;
  let before = null;

  async function compact() {
    isSending = true;
    button.disabled = true;
    message.replaceChildren();
    try {
      await json(`/topics/${encodeURIComponent(name)}/compact`, { method: "POST", isAsked: true });
      announce("Compaction has started.");
    } catch (failure) {
      if (!message.isConnected) announce(`${name} was not compacted: ${failure.message}`);
      message.replaceChildren(refusedNote(failure));
    }
    isSending = false;
    onAsked();
  }

  function draw({ cleanup_policy: policy, compaction, state }) {
    const reason =
      isLocal() === false
        ? "Only for a local cluster of lastword: compact other clusters with lastword topic compact."
        : !(policy ?? "").includes("compact")
          ? `Not for this topic: its cleanup.policy is ${policy ?? "unknown"}.`
          : state !== "connected"
            ? "Not possible while Kafka does not answer."
            : null;
    button.disabled = isSending || reason !== null || compaction?.state === "running";
    setText(button, compaction?.state === "running" ? "Compacting …" : "Compact now");
    setText(why, reason ?? "");
    setAttribute(element, "data-compaction", compaction?.state ?? null);
    if (before === "running" && compaction?.state !== "running")
      announce(compaction?.state === "done" ? "Compaction is done." : "Compaction has failed.");
    before = compaction?.state ?? null;
    if (!compaction) return fill(result, h("p", { class: "soft small" }, "Not compacted here since the server started."));
    if (compaction.state === "running")
      return fill(
        result,
        h(
          "p",
          { role: "status" },
          `Since ${lasting(now() - compaction.began)}: ${STEPS[compaction.step] ?? compaction.step ?? "started"}.`,
        ),
      );
    if (compaction.state === "failed") {
      return fill(
        result,
        h(
          "div",
          { class: "refused", role: "alert" },
          h("p", {}, h("b", {}, "Failed: "), compaction.why ?? "the reason is unknown"),
          h("p", { class: "small" }, "For details run: ", h("code", {}, `lastword topic compact ${name}`)),
        ),
      );
    }
    fill(result, outcome(compaction));
  }
  return { element, draw };
}

function outcome({ before, after, began, ended, why }) {
  const line = (label, field, format) => {
    const from = before?.[field],
      to = after?.[field];
    const less = isKnown(from) && isKnown(to) && from > 0 ? (from - to) / from : null;
    return h(
      "div",
      {},
      h("dt", {}, label),
      h(
        "dd",
        {},
        figure(from, format, "not known before"),
        " → ",
        figure(to, format, "not known after"),
        less > 0 ? h("span", { class: "soft" }, ` (${share(less)} less)`) : null,
      ),
    );
  };
  return h(
    "div",
    {},
    h("dl", { class: "facts", "data-outcome": "" }, line("Records", "records", count), line("Bytes", "bytes", bytes)),
    h(
      "p",
      { class: "soft small" },
      "Done ",
      since(ended),
      isKnown(began) && isKnown(ended) ? `, in ${lasting(ended - began)}` : "",
      ".",
    ),
    why ? h("p", { class: "small", "data-why": "" }, why) : null,
  );
}
