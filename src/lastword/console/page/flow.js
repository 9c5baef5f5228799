/**
 * The flow as a picture: source, pipeline, topics, tables, from left to right, each with its state, rate and lag, and
 * wires between them. The parts are elements, so that they can be read and have links; only the wires are drawn.
 */

import { h, s, setAttribute, setText } from "./dom.js";
import { bytes, count, isKnown, plural, rate } from "./format.js";
import { setState, stateMark } from "./parts.js";
import { href } from "./router.js";

const COLUMNS = ["Source", "Pipeline", "Topics", "Tables"];

/** @typedef {{id: string, column: number, title: string, href: string|null, state: string, words: string, lines: string[], to: {id: string, rate: number|null}[]}} Part */

/** The parts of the flow, from the answers about the cluster and the tables. @returns {Part[]} */
export function partsOf(cluster, tables) {
  const topics = new Map((cluster?.topics ?? []).map((topic) => [topic.name, topic]));
  const isAway = cluster ? cluster.state !== "connected" : false;
  const pipelines = cluster?.pipelines ?? [];
  const sources = new Set(pipelines.map((pipeline) => pipeline.source));
  const fed = (pipeline) =>
    [...new Set([...(pipeline.emits ?? []), ...(pipeline.keeps ?? []), topicOf(pipeline.table, tables)])].filter(
      Boolean,
    );
  const parts = [...sources].filter(Boolean).map((name) => ({
    ...topicPart(name, topics.get(name), isAway),
    id: `source:${name}`,
    column: 0,
    to: pipelines
      .filter((each) => each.source === name)
      .map((each) => ({ id: `pipeline:${each.app}`, rate: each.state === "running" && !isAway ? each.rate : 0 })),
  }));
  for (const pipeline of pipelines) {
    // While Kafka is away its last report is old, whatever it says.
    const isRunning = pipeline.state === "running" && !isAway;
    parts.push({
      id: `pipeline:${pipeline.app}`,
      column: 1,
      title: pipeline.app,
      href: pipeline.table ? href(["tables", pipeline.table, pipeline.app]) : null,
      state: isAway ? "unknown" : pipeline.state,
      words: isAway ? "no report" : pipeline.state,
      lines: [
        isRunning ? rate(pipeline.rate) : "rate unknown",
        `${isKnown(pipeline.lag) ? plural(pipeline.lag, "record") : "unknown"} behind${isRunning ? "" : ", at the last report"}`,
        isKnown(pipeline.batch?.latency_ms) && isRunning
          ? `${count(pipeline.batch.latency_ms)} ms from record to result`
          : null,
        `generation ${count(pipeline.generation)}`,
      ].filter(Boolean),
      to: fed(pipeline).map((name) => ({
        id: `topic:${name}`,
        rate: isRunning ? (topics.get(name)?.records_per_s ?? null) : 0,
      })),
    });
  }
  const named = new Set([...pipelines.flatMap(fed), ...(tables?.tables ?? []).map((table) => table.topic)]);
  for (const name of named) {
    if (sources.has(name)) continue;
    parts.push({
      ...topicPart(name, topics.get(name), isAway),
      id: `topic:${name}`,
      column: 2,
      to: (tables?.tables ?? [])
        .filter((table) => table.topic === name)
        .map((table) => ({ id: `table:${table.name}`, rate: topics.get(name)?.records_per_s ?? null })),
    });
  }
  // In the order of their topics, so that few wires cross.
  const order = [...named];
  for (const table of [...(tables?.tables ?? [])].sort((a, b) => order.indexOf(a.topic) - order.indexOf(b.topic))) {
    parts.push({
      id: `table:${table.name}`,
      column: 3,
      title: table.name,
      href: href(["tables", table.name]),
      state: table.state,
      words: table.state.replace("-", " "),
      lines: [
        isKnown(table.rows) ? plural(table.rows, "row") : "rows unknown",
        isKnown(table.lag) ? `${plural(table.lag, "record")} behind` : "lag unknown",
      ],
      to: [],
    });
  }
  return parts;
}

const topicOf = (name, tables) => (tables?.tables ?? []).find((table) => table.name === name)?.topic ?? null;

function topicPart(name, topic, isAway) {
  const isSick = topic?.leaderless || topic?.under_replicated;
  return {
    title: name,
    href: href(["topics", name]),
    state: !topic ? "unknown" : isAway || isSick ? "trouble" : "ok",
    words: !topic
      ? "unknown"
      : isAway
        ? "away"
        : topic.leaderless
          ? "without leader"
          : topic.under_replicated
            ? "too few replicas"
            : "fine",
    lines: topic
      ? [
          isAway ? "rate unknown" : topic.records_per_s === 0 ? "nothing new" : rate(topic.records_per_s),
          `${topic.cleanup_policy}, ${plural(topic.partitions, "partition")}, ${bytes(topic.bytes)}`,
        ]
      : [],
    to: [],
  };
}

/** @returns {{element: HTMLElement, draw: (parts: Part[], why: string|null) => void, close: () => void}} */
export function flowPicture() {
  const elements = new Map();
  const wires = s("svg", { class: "wires", "aria-hidden": "true" });
  const columns = COLUMNS.map((name) => {
    const list = h("ul", {});
    return {
      list,
      empty: h("p", { class: "flow-none soft" }),
      element: h("div", { class: "flow-column" }, h("h3", {}, name), list),
    };
  });
  const element = h(
    "div",
    { class: "flow" },
    wires,
    columns.map((column) => column.element),
  );
  let parts = [];
  let wiring = "";
  const watcher = new ResizeObserver(() => drawWires(element, wires, parts, elements));
  watcher.observe(element);

  const draw = (next, why) => {
    parts = next;
    const ids = new Set(parts.map((part) => part.id));
    for (const [id, made] of elements) {
      if (ids.has(id)) continue;
      made.element.remove();
      elements.delete(id);
    }
    for (const part of parts) {
      let made = elements.get(part.id);
      if (!made) elements.set(part.id, (made = makePart(part)));
      updatePart(made, part);
      if (made.element.parentNode !== columns[part.column].list) columns[part.column].list.append(made.element);
    }
    columns.forEach(({ list, empty, element: place }, at) => {
      const isEmpty = !parts.some((part) => part.column === at);
      setText(empty, at < 2 ? (why ?? "No pipeline status is served here.") : (why ?? "None."));
      if (isEmpty) place.append(empty);
      else empty.remove();
      list.hidden = isEmpty;
    });
    // The paths of the wires depend on the parts; their look, on the rates.
    const now = parts.map((part) => `${part.id}>${part.to.map((to) => `${to.id}*${speedOf(to.rate)}`)}`).join("|");
    if (now !== wiring) drawWires(element, wires, parts, elements);
    wiring = now;
  };
  return { element, draw, close: () => watcher.disconnect() };
}

function makePart(part) {
  const state = stateMark("unknown");
  const lines = h("ul", { class: "flow-lines" });
  const title = part.href ? h("a", { href: part.href }, part.title) : h("span", {}, part.title);
  return {
    element: h(
      "li",
      { class: "flow-part", "data-part": part.id },
      h("div", { class: "flow-title" }, title, state),
      lines,
    ),
    state,
    lines,
  };
}

function updatePart(made, part) {
  setAttribute(made.element, "data-state", part.state);
  setState(made.state, part.state, part.words);
  while (made.lines.children.length > part.lines.length) made.lines.lastChild.remove();
  part.lines.forEach((text, at) => {
    if (!made.lines.children[at]) made.lines.append(h("li", {}));
    setText(made.lines.children[at], text);
  });
}

const speedOf = (perSecond) => (!perSecond ? 0 : perSecond < 10 ? 1 : perSecond < 200 ? 2 : 3);

/** Reads all places first, and then draws all wires: one layout. */
function drawWires(element, wires, parts, elements) {
  const frame = element.getBoundingClientRect();
  const place = new Map([...elements].map(([id, made]) => [id, made.element.getBoundingClientRect()]));
  const made = [];
  for (const part of parts) {
    for (const { id, rate: perSecond } of part.to) {
      const from = place.get(part.id),
        to = place.get(id);
      if (!from || !to) continue;
      const x1 = from.right - frame.left,
        x2 = to.left - frame.left;
      if (x2 <= x1) continue;
      const y1 = from.top + from.height / 2 - frame.top,
        y2 = to.top + to.height / 2 - frame.top;
      const half = (x2 - x1) / 2;
      const d = `M${x1.toFixed(1)} ${y1.toFixed(1)}C${(x1 + half).toFixed(1)} ${y1.toFixed(1)} ${(x2 - half).toFixed(1)} ${y2.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`;
      made.push(s("path", { class: "wire", d }));
      const speed = speedOf(perSecond);
      if (speed) made.push(s("path", { class: `wire-flow wire-flow-${speed}`, d }));
    }
  }
  wires.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  wires.replaceChildren(...made);
}
