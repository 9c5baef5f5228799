/** Records that the board refused: how many and why, and the last of them with the beginning of their value. */

import { fill, h } from "../dom.js";
import { count, since } from "../format.js";
import { note, problemNote } from "../notes.js";
import { sheet } from "../parts.js";
import { href } from "../router.js";
import { isolated, visible } from "../visible.js";

const FIRST_RECORDS = 10;

export function refusedPart() {
  const body = h("div", { class: "card-body" });
  const element = h(
    "section",
    { class: "card", "aria-label": "Refused records" },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, "Refused records"),
      h("span", { class: "soft small" }, "they changed nothing on the board"),
    ),
    body,
  );
  let all = false;
  let answer = null;

  function draw(next) {
    if (next === null) return;
    answer = next;
    if (!answer.counts.length) return fill(body, note("empty", "No record was refused."));
    fill(body, h("div", { class: "refused-split" }, reasons(answer.counts), last(answer.last)));
  }

  function reasons(counts) {
    const { element: frame, body: rows } = sheet("Refused by reason", [
      { name: "Team" },
      { name: "Reason" },
      { name: "Records", class: "num" },
    ]);
    rows.append(
      ...counts.map((each) =>
        h(
          "tr",
          { role: "row", "data-reason": each.reason },
          h(
            "th",
            { role: "rowheader", scope: "row" },
            each.team === null ? h("span", { class: "unknown" }, "no team") : isolated(each.team),
          ),
          h("td", { role: "cell" }, each.meaning),
          h("td", { role: "cell", class: "num" }, count(each.count)),
        ),
      ),
    );
    return frame;
  }

  function last(records) {
    const { element: frame, body: rows } = sheet(
      "Last refused records",
      [{ name: "When" }, { name: "Record" }, { name: "Reason" }, { name: "Begins with" }],
      { "data-narrow": "cards" },
    );
    rows.append(
      ...records
        .slice(0, all ? records.length : FIRST_RECORDS)
        .map((each) =>
          h(
            "tr",
            { role: "row" },
            h("td", { role: "cell", class: "soft" }, since(each.time)),
            h(
              "td",
              { role: "cell", class: "small" },
              h("a", { href: href(["topics", each.topic]) }, each.topic),
              h("span", { class: "mono" }, ` ${each.partition}:${each.offset}`),
            ),
            h("td", { role: "cell" }, visible(each.words)),
            h("td", { role: "cell" }, h("code", { class: "excerpt", dir: "auto" }, visible(each.excerpt ?? ""))),
          ),
        ),
    );
    const more =
      records.length > FIRST_RECORDS && !all
        ? h(
            "button",
            {
              type: "button",
              class: "quiet",
              on: {
                click: () => {
                  all = true;
                  draw(answer);
                },
              },
            },
            `Show all ${records.length}`,
          )
        : null;
    return h("div", {}, frame, more);
  }

  return { element, draw, fail: (problem) => answer ?? fill(body, problemNote(problem, "Refused records")) };
}
