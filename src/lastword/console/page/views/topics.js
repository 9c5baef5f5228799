/** The topics of the cluster: how large each is, how it is cleaned, how fast it grows. */

import { fill, h, setText } from "../dom.js";
import { bytes, count, rate, since } from "../format.js";
import { loading, note, problemNote } from "../notes.js";
import { soon } from "../paint.js";
import { line, setFigure, setState, sheet, stateMark } from "../parts.js";
import { href } from "../router.js";
import { KeyedRows } from "../rows.js";

const CELLS = [
  { name: "topic", isHead: true },
  { name: "state", label: "State" },
  { name: "policy", label: "Policy" },
  { name: "bytes", class: "num", label: "Bytes" },
  { name: "records", class: "num", label: "Records, at most" },
  { name: "rate", class: "num", label: "Rate" },
  { name: "partitions", class: "num", label: "Partitions" },
  { name: "copies", class: "num", label: "Replicas" },
  { name: "tables", label: "Tables" },
];
const NOT_REPORTED = "the cluster does not report it";

export function openTopics(_route, shell) {
  const facts = h("span", { class: "soft" });
  const { element: frame, body } = sheet(
    "Topics",
    [
      { name: "Topic" },
      { name: "State" },
      { name: "Policy", hint: "cleanup.policy" },
      { name: "Bytes", class: "num" },
      { name: "Records, at most", class: "num", hint: "log end minus log start: compaction leaves fewer" },
      { name: "Rate", class: "num" },
      { name: "Partitions", class: "num" },
      { name: "Replicas", class: "num" },
      { name: "Tables" },
    ],
    { "data-narrow": "cards" },
  );
  const rows = new KeyedRows(body, { keyOf: (topic) => topic.name, make, update });
  const place = h("div", { class: "card" }, loading("the topics"));

  function draw() {
    const { cluster } = shell;
    if (!cluster.value) return cluster.problem ? fill(place, problemNote(cluster.problem, "Topics")) : undefined;
    const topics = cluster.value.topics ?? [];
    fill(facts, `${count(topics.length)} in this cluster, without Kafka's internal topics · as of `, since(cluster.value.at));
    if (!topics.length) {
      return fill(
        place,
        cluster.value.state === "connecting"
          ? loading("the topics, as soon as Kafka answers")
          : note("empty", "There is no topic yet.", "Create one: ", h("code", {}, "lastword topic create NAME")),
      );
    }
    if (!frame.isConnected) fill(place, frame);
    rows.show(topics);
  }
  draw();
  return {
    element: h("div", {}, h("div", { class: "head" }, h("h1", {}, "Topics"), facts), place),
    title: () => "Topics",
    news: () => soon(draw),
  };
}

function make(topic) {
  const { element, cells } = line(CELLS, { "data-topic": topic.name });
  cells.topic.append(h("a", { href: href(["topics", topic.name]) }, topic.name));
  cells.state.append(stateMark("unknown"));
  element.made = cells;
  return element;
}

function update(element, topic) {
  const cells = element.made;
  const [state, words] = topic.leaderless
    ? ["failed", `${topic.leaderless} without leader`]
    : topic.under_replicated
      ? ["trouble", `${topic.under_replicated} with too few replicas`]
      : ["ok", "fine"];
  setState(cells.state.firstChild, state, words);
  setText(cells.policy, topic.cleanup_policy ?? "unknown");
  setFigure(cells.bytes, topic.bytes, bytes, NOT_REPORTED);
  setFigure(cells.records, topic.start_to_end, count, NOT_REPORTED);
  setFigure(cells.rate, topic.records_per_s, rate, "needs two measurements");
  setFigure(cells.partitions, topic.partitions, count, NOT_REPORTED);
  setFigure(cells.copies, topic.replication, count, NOT_REPORTED);
  const names = (topic.tables ?? []).join(",");
  if (cells.tables.dataset.words === names) return;
  cells.tables.dataset.words = names;
  fill(
    cells.tables,
    names ? null : h("span", { class: "soft" }, "none"),
    (topic.tables ?? []).map((name, at) => [at ? ", " : "", h("a", { href: href(["tables", name]) }, name)]),
  );
}
