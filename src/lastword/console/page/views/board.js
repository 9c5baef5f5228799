/** The leaderboard: the teams in order, live; a change of rank is animated. */

import { isAborted, json } from "../api.js";
import { flaggedPerSecond, remember } from "../board_memory.js";
import { announce, fill, h, setAttribute, setText } from "../dom.js";
import { count, hour, isKnown, moment, plural, rate } from "../format.js";
import { loading, note, problemNote } from "../notes.js";
import { everySecond, never, soon } from "../paint.js";
import { line, setFigure, sheet } from "../parts.js";
import { KeyedRows } from "../rows.js";
import { sparkline } from "../spark.js";
import { openStream } from "../stream.js";
import { isolated } from "../visible.js";
import { refusedPart } from "./refused.js";

const BADGES = [
  ["connected", "🔌", "connected"],
  ["first_action", "📤", "first valid action"],
  ["shared_work", "⚖️", "shared work: two or more members or tasks"],
  ["first_stats", "📊", "first valid stats record"],
];
const CELLS = [
  { name: "rank", class: "num" },
  { name: "team", isHead: true },
  { name: "badges", class: "badges" },
  { name: "actions", class: "num", label: "Actions" },
  { name: "actions_per_s", class: "num soft", label: "per second" },
  { name: "processed", class: "num", label: "Processed" },
  { name: "processed_per_s", class: "num soft", label: "per second" },
  { name: "flagged", class: "num", label: "Flagged" },
  { name: "line", class: "cell-line", label: "Flagged, recently" },
  { name: "lag", class: "num", label: "Lag" },
  { name: "refused", class: "num", label: "Refused" },
];
const NOT_NOW = "not known now";

export function openBoard(_route, shell) {
  let board = null;
  let state = null;
  let leader = null;
  const facts = h("span", { class: "soft" });
  const { element: frame, body } = sheet(
    "Leaderboard",
    [
      { name: "Rank", class: "num" },
      { name: "Team" },
      { name: "Badges" },
      { name: "Actions", class: "num" },
      { name: "/s", class: "num", hint: "actions per second" },
      { name: "Processed", class: "num" },
      { name: "/s", class: "num", hint: "users processed per second" },
      { name: "Flagged", class: "num" },
      { name: "Flagged /s, recently" },
      { name: "Lag", class: "num", hint: "records of new_users not read yet" },
      { name: "Refused", class: "num" },
    ],
    { class: "sheet board", "data-narrow": "cards" },
  );
  const rows = new KeyedRows(body, { keyOf: (team) => team.team, make, update });
  const refused = refusedPart();
  const place = h("div", { class: "card" }, loading("the board"));
  let reading = null;

  let stream = null;
  const listen = () => {
    stream = openStream(subscription);
  };
  const subscription = {
    path: "/board/changes",
    onState: (next) => {
      state = next;
      shell.setStream(next);
      soon(draw);
    },
    onGone: () => {},
    onEvents: (events) => {
      board = JSON.parse(events.at(-1).text);
      remember(board);
      readRefused(board.refused.total);
      soon(draw);
    },
  };
  // An idle team sends nothing, but its line continues.
  const end = everySecond(() => {
    begin();
    if (board && state?.name === "live") remember(board);
    draw();
  });

  /** Opens the stream as soon as the board is known to exist: a browser logs every 404 as an error. */
  function begin() {
    const { value, problem } = shell.cluster;
    if (stream === null && (value || problem) && value?.board !== false) listen();
  }

  async function readRefused(total) {
    if (reading === total || total === 0) return refused.draw(total === 0 ? { counts: [], last: [] } : null);
    reading = total;
    try {
      const answer = await json("/board/refused");
      soon(() => refused.draw(answer));
    } catch (failure) {
      reading = null;
      if (!isAborted(failure)) refused.fail(failure);
    }
  }

  function draw() {
    if (!board) {
      if (shell.cluster.value?.board === false || (state?.name === "refused" && state.refusal.status === 404)) {
        fill(
          place,
          note(
            "absent",
            "This server has no board.",
            "Start the server with a board: ",
            h("code", {}, "lastword serve --board …"),
            ", or start everything: ",
            h("code", {}, "lastword up --detach"),
          ),
        );
      } else if (state?.refusal) fill(place, problemNote(state.refusal, "The board"));
      return;
    }
    if (!frame.isConnected) fill(place, frame);
    if (!board.teams.length)
      return fill(
        place,
        note(
          "empty",
          "No team yet.",
          "A team appears as soon as it writes, joins or is registered: ",
          h("code", {}, "lastword team add NAME"),
        ),
      );
    rows.show(board.teams, { moves: true });
    const first = board.teams[0].team;
    if (leader !== null && leader !== first) announce(`${first} leads now.`);
    leader = first;
    fill(
      facts,
      plural(board.teams.length, "team"),
      ` · ${first} leads · ${plural(board.refused.total, "record")} refused`,
      board.missed ? ` · ${plural(board.missed, "record")} expired before the count` : "",
      ` · as of ${hour(board.at)}`,
      board.state === "ready" ? "" : " · a part of the board can't be read now: lag and rates are unknown",
    );
  }

  begin();
  return {
    element: h(
      "div",
      { class: "stack" },
      h(
        "div",
        {},
        h("div", { class: "head" }, h("h1", {}, "Leaderboard"), facts),
        place,
        h(
          "p",
          { class: "soft small legend" },
          "In order of badges, then actions, then name. ",
          BADGES.map(([, symbol, words]) =>
            h("span", { class: "legend-badge" }, h("span", { "aria-hidden": "true" }, symbol), ` ${words} `),
          ),
        ),
      ),
      refused.element,
    ),
    title: () => "Leaderboard",
    news: () => {
      begin();
      soon(draw);
    },
    close: () => {
      stream?.close();
      end();
      never(draw);
    },
  };
}

function make(team) {
  const { element, cells } = line(CELLS, { "data-team": team.team });
  const name = h("span", {}, isolated(team.team));
  const reset = h("span", { class: "tag reset", title: "the counters of this team went back", hidden: true }, "reset");
  const kind = h("span", { class: "soft small kind" });
  cells.team.append(name, kind, reset);
  const spark = sparkline({ clips: true });
  cells.line.append(spark.element);
  element.made = { cells, reset, kind, spark, badges: "" };
  return element;
}

function update(element, team) {
  const { cells, reset, kind, spark } = element.made;
  setAttribute(element, "data-rank", team.rank);
  setAttribute(element, "data-reset", team.reset);
  setText(cells.rank, team.rank);
  setText(kind, team.kind === "outside" ? " outside" : "");
  reset.hidden = !team.reset;
  drawBadges(element.made, team);
  setText(cells.actions, count(team.actions));
  setFigure(cells.actions_per_s, team.actions_per_s, rate, NOT_NOW);
  setFigure(cells.processed, team.processed, count, "this team has written no valid stats record");
  setFigure(cells.processed_per_s, team.processed_per_s, rate, NOT_NOW);
  setFigure(cells.flagged, team.flagged, count, "this team has written no valid stats record");
  setFigure(cells.lag, team.lag, count, NOT_NOW);
  setText(cells.refused, count(team.refused));
  const points = flaggedPerSecond(team.team);
  const known = points.filter((point) => isKnown(point.value));
  spark.draw(
    points,
    known.length > 1
      ? `Flagged per second by ${team.team}, recently: ${rate(known.at(-1).value)}, at most ${rate(Math.max(...known.map((each) => each.value)))}`
      : `Flagged per second by ${team.team}: not enough data yet`,
  );
}

function drawBadges(made, team) {
  const words = JSON.stringify(team.badges);
  if (made.badges === words) return;
  made.badges = words;
  const earned = new Map(team.badges.map((badge) => [badge.name, badge.earned]));
  fill(
    made.cells.badges,
    BADGES.map(([name, symbol, meaning]) => {
      const at = earned.get(name);
      return isKnown(at)
        ? h(
            "span",
            {
              class: "badge",
              role: "img",
              "aria-label": `${meaning}, since ${moment(at)}`,
              title: `${meaning}, since ${moment(at)}`,
            },
            symbol,
          )
        : h(
            "span",
            { class: "badge none", role: "img", "aria-label": `not yet: ${meaning}`, title: `not yet: ${meaning}` },
            "·",
          );
    }),
  );
}
