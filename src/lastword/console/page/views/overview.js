/** The first view: problems, the flow, the numbers, the leading team. */

import { link } from "../api.js";
import { remember } from "../board_memory.js";
import { fill, h, setText } from "../dom.js";
import { flowPicture, partsOf } from "../flow.js";
import { bytes, count, isKnown, plural, rate, since } from "../format.js";
import { loading, note, problemNote } from "../notes.js";
import { never, soon } from "../paint.js";
import { figure, setFigure } from "../parts.js";
import { Poll } from "../poll.js";
import { href } from "../router.js";
import { sparkline } from "../spark.js";
import { isDeclined } from "../token.js";
import { troubles } from "../troubles.js";

const NO_STATUS = "no pipeline status is served here";

export function openOverview(_route, shell) {
  /** Asked for unless the server says that it has no board: a browser logs every 404 as an error. */
  let board = null;
  const summary = h("p", { class: "soft" });
  const flow = flowPicture();
  const parts = {
    processed: statPart("users-processed", "Users processed"),
    leader: statPart("leader", "Team in the lead"),
    rows: statPart("rows", "Rows served"),
    bytes: statPart("bytes", "Bytes on disk", true),
    behind: statPart("behind", "Pipeline lag", true),
  };
  const stats = h(
    "section",
    { "aria-label": "Numbers" },
    h(
      "dl",
      { class: "stats" },
      Object.values(parts).map((part) => part.element),
    ),
  );
  const events = h("ol", { class: "events" });
  const recent = h(
    "section",
    { class: "card", "aria-label": "Recent events" },
    h("div", { class: "card-head" }, h("h2", {}, "Recent events")),
    h("div", { class: "card-body" }, events),
  );
  const body = h("div", { class: "stack" }, loading("the status"));
  const whole = [
    stats,
    h(
      "section",
      { class: "card", "aria-label": "Flow" },
      h(
        "div",
        { class: "card-head" },
        h("h2", {}, "Flow"),
        h("span", { class: "soft small" }, "data goes from left to right"),
      ),
      h("div", { class: "card-body" }, flow.element),
    ),
    recent,
  ];
  const element = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Overview"), summary), body);

  function draw() {
    const { cluster, tables } = shell;
    if (!cluster.value && !tables.value) {
      if (tables.problem) fill(body, problemNote(tables.problem, "Status"));
      return;
    }
    if (!whole[0].isConnected) fill(body, whole);
    const problems = troubles({ ...shell, link, isDeclined: isDeclined(), host: location.host });
    const serious = problems.filter((each) => !each.isInfo).length;
    const answer = cluster.value;
    setText(
      summary,
      [
        serious
          ? `${plural(serious, "problem")}: see above.`
          : problems.length
            ? "No problems; see the notes above."
            : "All is well.",
        answer
          ? `${plural(answer.brokers?.length ?? 0, "broker")}, ${plural(answer.topics?.length ?? 0, "topic")}${answer.is_local ? ", on this machine" : ""}`
          : "The server has no information about its cluster.",
      ].join(" "),
    );
    drawProcessed(parts.processed, answer);
    if (answer && answer.board !== false)
      board ??= new Poll("/board", (poll) => {
        if (poll.value) remember(poll.value);
        soon(draw);
      });
    drawLeader(parts.leader, board);
    drawRows(parts.rows, tables.value);
    drawBytes(parts.bytes, answer);
    drawBehind(parts.behind, answer);
    flow.draw(partsOf(answer, tables.value), cluster.isAbsent ? "This server has no information about its cluster." : null);
    drawEvents(recent, events, answer);
  }
  draw();
  return {
    element,
    title: () => "Overview",
    news: () => soon(draw),
    close: () => {
      never(draw);
      board?.close();
      flow.close();
    },
  };
}

function statPart(name, label, hasLine = false) {
  const value = h("span", { class: "stat-value" });
  const more = h("span", { class: "stat-more" });
  const spark = hasLine ? sparkline({ width: 240, height: 36, zero: false }) : null;
  const element = h(
    "div",
    { class: "card stat", "data-figure": name },
    h("dt", {}, label),
    h("dd", {}, value, more, spark?.element),
  );
  return { element, label: element.firstChild, value, more, spark };
}

/** Whether the last report of the pipeline is recent. */
const hasReported = (cluster) => cluster.state === "connected" && cluster.pipelines[0].state === "running";

function drawProcessed(part, cluster) {
  const pipeline = cluster?.pipelines?.[0];
  setText(
    part.label,
    !pipeline || pipeline.source === "new_users" ? "Users processed" : `Records of ${pipeline.source} processed`,
  );
  setFigure(part.value, pipeline?.valid, count, NO_STATUS);
  const details = [];
  if (!pipeline) details.push(cluster ? NO_STATUS : "unknown to this server");
  else if (hasReported(cluster)) details.push(`${rate(pipeline.rate)} · ${count(pipeline.rejected)} malformed`);
  else details.push("at the last report, ", since(pipeline.at));
  fill(part.more, details);
}

function drawLeader(part, board) {
  const first = board?.value?.teams?.[0];
  setFigure(part.value, first?.team, String, "no board is served here");
  if (!first)
    return setText(
      part.more,
      !board || board.isAbsent ? "no board is served here" : board.value ? "no team yet" : "not knownPoints yet",
    );
  fill(
    part.more,
    plural(first.actions, "action"),
    " · ",
    plural(first.badges.length, "badge"),
    " · ",
    h("a", { href: href(["board"]) }, "board"),
  );
}

function drawRows(part, tables) {
  const counted = (tables?.tables ?? []).filter((table) => isKnown(table.rows));
  setFigure(
    part.value,
    tables && counted.length ? counted.reduce((sum, table) => sum + table.rows, 0) : null,
    count,
    "no table has been read yet",
  );
  const more = (tables?.tables ?? [])
    .slice(0, 3)
    .map((table, at) => [at ? " · " : "", `${table.name} `, figure(table.rows, count, table.why ?? "not read yet")]);
  fill(part.more, more);
}

function drawBytes(part, cluster) {
  const sizes = (cluster?.topics ?? []).map((topic) => topic.bytes);
  const isAll = sizes.length > 0 && sizes.every(isKnown);
  setFigure(
    part.value,
    isAll ? sizes.reduce((a, b) => a + b, 0) : null,
    bytes,
    "the sizes of some topics are not known",
  );
  fill(
    part.more,
    sizes.length
      ? [`in ${plural(sizes.length, "topic")} · `, h("a", { href: href(["topics"]) }, "topics")]
      : "not known",
  );
  drawLine(part.spark, cluster?.history, "bytes", (value) => bytes(value), "Bytes");
}

function drawBehind(part, cluster) {
  const pipeline = cluster?.pipelines?.[0];
  const isNow = pipeline !== undefined && hasReported(cluster);
  setFigure(part.value, isNow ? pipeline.lag : null, count, pipeline ? "no recent report" : NO_STATUS);
  setText(
    part.more,
    !pipeline
      ? NO_STATUS
      : !isNow
        ? "unknown: no recent report"
        : !isKnown(pipeline.lag)
          ? "not reported yet"
          : pipeline.lag
            ? `records of ${pipeline.source} not read yet`
            : `all of ${pipeline.source} is read`,
  );
  drawLine(part.spark, cluster?.history, "lag", count, "Lag");
}

function drawLine(spark, history, field, format, name) {
  const points = (history ?? []).map((each) => ({ at: each.at, value: each[field] }));
  const knownPoints = points.filter((point) => isKnown(point.value));
  spark.draw(
    points,
    knownPoints.length > 1
      ? `${name} over time: from ${format(knownPoints[0].value)} to ${format(knownPoints.at(-1).value)}`
      : `${name} over time: not enough knownPoints yet`,
  );
}

function drawEvents(place, list, cluster) {
  const all = (cluster?.pipelines ?? []).flatMap((pipeline) =>
    (pipeline.events ?? []).map((event) => ({ ...event, app: pipeline.app })),
  );
  const newest = all.sort((a, b) => b.at - a.at).slice(0, 6);
  place.hidden = !newest.length;
  const words = JSON.stringify(newest);
  if (list.dataset.words === words) return;
  list.dataset.words = words;
  fill(
    list,
    newest.length
      ? newest.map((event) => h("li", {}, since(event.at), h("span", {}, h("b", {}, event.app), ` ${event.what}`)))
      : note("empty", "Nothing yet."),
  );
}
