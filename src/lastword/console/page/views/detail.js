/** One row: its value, since when it is so and where it stands in the log; changed, deleted or not there, it says so. */

import { isAborted, text } from "../api.js";
import { announce, fill, h, setText } from "../dom.js";
import { bytes, count, moment, now, plural, since } from "../format.js";
import { loading, note, problemNote } from "../notes.js";
import { never, soon } from "../paint.js";
import { covers, later, offsetsOf } from "../position.js";
import { pageOf, valueSize } from "../row.js";
import { light } from "../rows.js";
import { valueView } from "../value.js";
import { onToken } from "../token.js";
import { isolated } from "../visible.js";
import { deleteRow, editRow } from "./edit.js";

/** @param {{name: string, standing: import("../poll.js").Poll, onClose: () => void}} of */
export function openDetail({ name, standing, onClose }) {
  let key = null;
  /** @type {import("../row.js").Row|null} */
  let row = null;
  let drawn = null;
  let problem = null;
  let isMissing = false;
  let changes = 0;
  let ack = null;
  let reading = null;
  /** Where the changes begin that come by `apply`: an older answer would lack what lies between. */
  let begin = null;
  /** How far the last answer had read. */
  let seen = null;
  let isClosed = false;

  const title = h("h2", { tabindex: "-1" });
  const edit = h("button", { type: "button", on: { click: () => write(editRow) } }, "Edit");
  const remove = h("button", { type: "button", on: { click: () => write(deleteRow) } }, "Delete");
  const close = h("button", { type: "button", class: "quiet", on: { click: onClose } }, "Close");
  const said = h("div", { "aria-live": "polite" });
  const body = h("div", { class: "lightable" });
  const element = h(
    "section",
    { class: "card detail", "data-detail": "", hidden: true },
    h("div", { class: "card-head" }, title, h("div", { class: "head-end" }, edit, remove, close)),
    h("div", { class: "card-body" }, said, body),
  );

  const forget = onToken(() => problem?.status === 401 && read());

  async function write(how) {
    const done = await how({ name, codecs: standing.value, row: row ?? { key } });
    if (done) acknowledge(done);
  }

  /** A write was acknowledged: it is said where it stands, and what is shown is at least as new. */
  function acknowledge(done) {
    ack = done;
    announce(`${done.verb} at ${done.partition}:${done.offset}.`);
    if (isClosed || key !== done.key) return;
    if (done.verb === "Deleted")
      row = {
        ...row,
        key,
        isTombstone: true,
        isSwept: false,
        partition: done.partition,
        offset: done.offset,
        timestamp: now(),
      };
    else read();
    soon(draw);
  }

  async function read() {
    reading?.abort();
    reading = new AbortController();
    const mine = reading;
    try {
      if (!standing.value) await standing.asked();
      if (!standing.value) throw standing.problem;
      // The first row from this key on is the one, or there is none: to ask for a row that is not there would be an error in the browser's eyes.
      const position = later(begin, ack?.key === key ? ack.position : null);
      const asked = new URLSearchParams({ start: key, limit: "1", ...(position ? { min_position: position } : {}) });
      const answer = pageOf(
        await text(`/tables/${encodeURIComponent(name)}/rows?${asked}`, { signal: mine.signal }),
        standing.value.key,
      );
      if (mine.signal.aborted) return;
      problem = null;
      seen = answer.position;
      // Once reached, it is asked for no more: a topic that is made again begins at lower offsets.
      if (ack?.key === key) ack = { ...ack, position: null };
      const [found] = answer.rows;
      isMissing = found?.key !== key;
      if (!isMissing) take(found);
      // It is gone, unless it was written after this answer.
      else if (row && !row.isTombstone && (offsetsOf(seen).get(row.partition) ?? 0) > row.offset) row = null;
    } catch (failure) {
      if (isAborted(failure) || mine.signal.aborted) return;
      problem = failure;
      if (!(failure.status >= 400 && failure.status < 500))
        setTimeout(() => mine === reading && !mine.signal.aborted && read(), 2000);
    }
    soon(draw);
  }

  function take(found) {
    // What comes late from one way may be older than what came by the other.
    if (row && row.partition === found.partition && row.offset > found.offset) return;
    row = found;
    problem = null;
  }

  function draw() {
    element.hidden = key === null;
    if (key === null) return;
    fill(
      said,
      ack && ack.key === key
        ? h(
            "p",
            { class: "acked", "data-ack": `${ack.partition}:${ack.offset}` },
            h("b", {}, `${ack.verb} at ${ack.partition}:${ack.offset}. `),
            "All in-sync replicas have it.",
          )
        : null,
    );
    const isGone = row?.isTombstone ?? false;
    remove.disabled = !row || isGone;
    setText(edit, row && !isGone ? "Edit" : "Write it");
    if (row === drawn && row !== null && !problem) return;
    drawn = row;
    if (isGone) fill(body, deleted(row));
    else if (row)
      fill(body, facts(row, standing.value?.value ?? "json", changes), valueView(row, standing.value?.value ?? "json"));
    else if (isMissing)
      fill(
        body,
        note(
          "missing",
          "There is no row of this key.",
          "It may have been deleted, or never written. If it is written, it appears here.",
        ),
      );
    else if (problem) fill(body, problemNote(problem, "This row"));
    else fill(body, loading("the row"));
    if (changes && row) light(body);
  }

  return {
    element,
    acknowledge,
    focus: () => title.focus(),
    /** Shows another key; `known` is its row where the page has it. */
    follow: (next, known) => {
      if (next === key) return;
      // Its answer would be taken for one about the other key.
      reading?.abort();
      key = next;
      row = known;
      drawn = null;
      problem = null;
      isMissing = false;
      changes = 0;
      seen = null;
      if (ack?.key !== next) ack = null;
      element.setAttribute("aria-label", `Row ${key}`);
      fill(title, isolated(key ?? ""));
      if (key !== null && (!known || ack)) read();
      soon(draw);
    },
    /** The changes begin at `position`; `known` is the row in the page that was read there. */
    listenFrom: (position, known) => {
      begin = position;
      if (key === null) return;
      if (known) take(known);
      else if (!covers(seen, position)) read();
      soon(draw);
    },
    /** A change of the stream. */
    apply: (change) => {
      if (change.key !== key || change.isOpaqueKey) return;
      if (row && row.partition === change.partition && row.offset >= change.offset) return;
      row = change;
      problem = null;
      changes++;
      soon(draw);
    },
    close: () => {
      isClosed = true;
      forget();
      reading?.abort();
      never(draw);
    },
  };
}

function facts(row, codec, changes) {
  const fact = (term, ...told) => h("div", {}, h("dt", {}, term), h("dd", {}, ...told));
  return h(
    "dl",
    { class: "facts" },
    fact("Time", since(row.timestamp), h("span", { class: "soft" }, ` · ${moment(row.timestamp)}`)),
    fact("Partition", String(row.partition)),
    fact("Offset", count(row.offset)),
    fact("Size", bytes(valueSize(row, codec))),
    row.headers === null ? null : fact("Headers", h("code", {}, row.headers)),
    changes ? fact("Seen to change", `${plural(changes, "time")} since you opened it`) : null,
  );
}

function deleted(row) {
  return h(
    "div",
    {},
    note(
      "deleted",
      "This row was deleted.",
      row.isSwept ? "Its tombstone is gone already: the delete was found by a sweep. " : "",
      "Its last record is the tombstone at ",
      h("code", {}, `${row.partition}:${row.offset}`),
      ", ",
      since(row.timestamp),
      ".",
    ),
  );
}
