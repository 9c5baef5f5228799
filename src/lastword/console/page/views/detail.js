/** One row: its value, its time and its place in the log; or a note that it was deleted or does not exist. */

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

/** @param {{name: string, status: import("../poll.js").Poll, onClose: () => void}} of */
export function openDetail({ name, status, onClose }) {
  let key = null;
  /** @type {import("../row.js").Row|null} */
  let row = null;
  let drawn = null;
  let problem = null;
  let isMissing = false;
  let changes = 0;
  let ack = null;
  let reading = null;
  /** The position at which the changes of `apply` start: an older answer would miss the changes between. */
  let startPosition = null;
  /** The position of the last answer. */
  let answerPosition = null;
  let isClosed = false;

  const title = h("h2", { tabindex: "-1" });
  const edit = h("button", { type: "button", on: { click: () => write(editRow) } }, "Edit");
  const remove = h("button", { type: "button", on: { click: () => write(deleteRow) } }, "Delete");
  const close = h("button", { type: "button", class: "quiet", on: { click: onClose } }, "Close");
  const message = h("div", { "aria-live": "polite" });
  const body = h("div", { class: "lightable" });
  const element = h(
    "section",
    { class: "card detail", "data-detail": "", hidden: true },
    h("div", { class: "card-head" }, title, h("div", { class: "head-end" }, edit, remove, close)),
    h("div", { class: "card-body" }, message, body),
  );

  const forget = onToken(() => problem?.status === 401 && read());

  async function write(how) {
    const done = await how({ name, codecs: status.value, row: row ?? { key } });
    if (done) acknowledge(done);
  }

  /** A write was acknowledged: shows its partition and offset, and a row that is at least as new. */
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
    const attempt = reading;
    try {
      if (!status.value) await status.asked();
      if (!status.value) throw status.problem;
      // Asks for the first row from this key on: a browser would log the 404 of a missing row as an error.
      const position = later(startPosition, ack?.key === key ? ack.position : null);
      const asked = new URLSearchParams({ start: key, limit: "1", ...(position ? { min_position: position } : {}) });
      const answer = pageOf(
        await text(`/tables/${encodeURIComponent(name)}/rows?${asked}`, { signal: attempt.signal }),
        status.value.key,
      );
      if (attempt.signal.aborted) return;
      problem = null;
      answerPosition = answer.position;
      // Once reached, the position is not asked for again: a recreated topic starts at lower offsets.
      if (ack?.key === key) ack = { ...ack, position: null };
      const [answerRow] = answer.rows;
      isMissing = answerRow?.key !== key;
      if (!isMissing) take(answerRow);
      // The row was deleted, unless it was written after this answer.
      else if (row && !row.isTombstone && (offsetsOf(answerPosition).get(row.partition) ?? 0) > row.offset) row = null;
    } catch (failure) {
      if (isAborted(failure) || attempt.signal.aborted) return;
      problem = failure;
      if (!(failure.status >= 400 && failure.status < 500))
        setTimeout(() => attempt === reading && !attempt.signal.aborted && read(), 2000);
    }
    soon(draw);
  }

  function take(answerRow) {
    // A late answer may be older than a change of the stream, and the other way round.
    if (row && row.partition === answerRow.partition && row.offset > answerRow.offset) return;
    row = answerRow;
    problem = null;
  }

  function draw() {
    element.hidden = key === null;
    if (key === null) return;
    fill(
      message,
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
    setText(edit, row && !isGone ? "Edit" : "Write");
    if (row === drawn && row !== null && !problem) return;
    drawn = row;
    if (isGone) fill(body, deleted(row));
    else if (row)
      fill(body, facts(row, status.value?.value ?? "json", changes), valueView(row, status.value?.value ?? "json"));
    else if (isMissing)
      fill(
        body,
        note(
          "missing",
          "There is no row with this key.",
          "It was deleted, or never written. A new row with this key appears here.",
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
    /** Shows another key; `known` is its row if the page has it. */
    follow: (next, known) => {
      if (next === key) return;
      // An answer about the old key would be taken for one about the new key.
      reading?.abort();
      key = next;
      row = known;
      drawn = null;
      problem = null;
      isMissing = false;
      changes = 0;
      answerPosition = null;
      if (ack?.key !== next) ack = null;
      element.setAttribute("aria-label", `Row ${key}`);
      fill(title, isolated(key ?? ""));
      if (key !== null && (!known || ack)) read();
      soon(draw);
    },
    /** The changes start at `position`; `known` is the row of the page that was read there. */
    listenFrom: (position, known) => {
      startPosition = position;
      if (key === null) return;
      if (known) take(known);
      else if (!covers(answerPosition, position)) read();
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
  const fact = (term, ...content) => h("div", {}, h("dt", {}, term), h("dd", {}, ...content));
  return h(
    "dl",
    { class: "facts" },
    fact("Time", since(row.timestamp), h("span", { class: "soft" }, ` · ${moment(row.timestamp)}`)),
    fact("Partition", String(row.partition)),
    fact("Offset", count(row.offset)),
    fact("Size", bytes(valueSize(row, codec))),
    row.headers === null ? null : fact("Headers", h("code", {}, row.headers)),
    changes ? fact("Changed", `${plural(changes, "time")} since you opened this row`) : null,
  );
}

function deleted(row) {
  return h(
    "div",
    {},
    note(
      "deleted",
      "This row was deleted.",
      row.isSwept ? "Its tombstone was compacted away; a sweep answerRow the delete. " : "",
      "Its last record is the tombstone at ",
      h("code", {}, `${row.partition}:${row.offset}`),
      ", ",
      since(row.timestamp),
      ".",
    ),
  );
}
