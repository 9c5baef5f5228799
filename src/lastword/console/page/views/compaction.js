/** Compaction on demand: what it will do, how it goes, and what it came to. */

import { json } from "../api.js";
import { announce, fill, h, setAttribute, setText } from "../dom.js";
import { bytes, count, isKnown, lasting, now, share, since } from "../format.js";
import { refusedNote } from "../notes.js";
import { card, figure } from "../parts.js";

const STEPS = {
  look: "looking at its settings",
  count: "counting its records",
  journal: "noting the settings that it will put back",
  alter: "changing settings for the while",
  nudge: "closing the segments that are written to",
  abort: "closing the segments that are written to",
  wait: "waiting for Kafka's cleaner",
  restore: "putting the settings back",
  forget: "putting the settings back",
  recount: "counting what is left",
};

/** @param {{isLocal: () => boolean|null, onAsked: () => void}} how */
export function compactionPart(name, { isLocal, onAsked }) {
  const button = h("button", { type: "button", class: "main", on: { click: compact } }, "Compact now");
  const why = h("p", { class: "soft small" });
  const said = h("div", { "aria-live": "polite" });
  const result = h("div", {});
  const element = card(
    "Compaction",
    h(
      "p",
      {},
      "Kafka compacts in its own time. This makes it do so now: settings are changed for the while and put back.",
    ),
    h("div", { class: "buttons" }, button),
    why,
    said,
    result,
  );
  let isSending = false;
  let before = null;

  async function compact() {
    isSending = true;
    button.disabled = true;
    said.replaceChildren();
    try {
      await json(`/topics/${encodeURIComponent(name)}/compact`, { method: "POST", isAsked: true });
      announce("Compaction has begun.");
    } catch (failure) {
      if (!said.isConnected) announce(`${name} is not compacted: ${failure.message}`);
      said.replaceChildren(refusedNote(failure));
    }
    isSending = false;
    onAsked();
  }

  function draw({ cleanup_policy: policy, compaction, state }) {
    const reason =
      isLocal() === false
        ? "Only on a local cluster of lastword's: elsewhere it is for its owner."
        : !(policy ?? "").includes("compact")
          ? `Not for this topic: its policy is ${policy ?? "unknown"}.`
          : state !== "connected"
            ? "Not while Kafka does not answer."
            : null;
    button.disabled = isSending || reason !== null || compaction?.state === "running";
    setText(button, compaction?.state === "running" ? "Compacting …" : "Compact now");
    setText(why, reason ?? "");
    setAttribute(element, "data-compaction", compaction?.state ?? null);
    if (before === "running" && compaction?.state !== "running")
      announce(compaction?.state === "done" ? "Compaction is done." : "Compaction has failed.");
    before = compaction?.state ?? null;
    if (!compaction) return fill(result, h("p", { class: "soft small" }, "Not asked for since the server started."));
    if (compaction.state === "running")
      return fill(
        result,
        h(
          "p",
          { role: "status" },
          `Since ${lasting(now() - compaction.began)}: ${STEPS[compaction.step] ?? compaction.step ?? "it has begun"}.`,
        ),
      );
    if (compaction.state === "failed") {
      return fill(
        result,
        h(
          "div",
          { class: "refused", role: "alert" },
          h("p", {}, h("b", {}, "It failed: "), compaction.why ?? "no reason is known"),
          h("p", { class: "small" }, "See why it does not compact: ", h("code", {}, `lastword topic compact ${name}`)),
        ),
      );
    }
    fill(result, outcome(compaction));
  }
  return { element, draw };
}

function outcome({ before, after, began, ended, why }) {
  const line = (label, field, tell) => {
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
        figure(from, tell, "not known before"),
        " → ",
        figure(to, tell, "not known after"),
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
