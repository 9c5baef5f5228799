/**
 * One topic: its log, how much of it is obsolete, and compaction on demand. A number that was not counted is shown as
 * unknown, with the reason.
 */

import { fill, h, setAttribute, setText } from "../dom.js";
import { bytes, count, hour, isKnown, lasting, plural, rate, share, since, times } from "../format.js";
import { loading, note, problemNote } from "../notes.js";
import { never, soon } from "../paint.js";
import { card, figure, setFigure, sheet } from "../parts.js";
import { Poll } from "../poll.js";
import { href } from "../router.js";
import { sparkline } from "../spark.js";
import { compactionPart } from "./compaction.js";

const MARKS = [
  ["live-keys", "live keys", "live_keys"],
  ["obsolete", "obsolete", "obsolete"],
  ["tombstones", "tombstones", "tombstones"],
];

export function openTopic(route, shell) {
  const name = route.topic;
  let poll = null;
  let isMissing = false;
  const facts = h("p", { class: "soft" });
  const census = censusPart();
  const compaction = compactionPart(name, {
    isLocal: () => shell.cluster.value?.is_local ?? null,
    onAsked: () => poll?.ask(),
  });
  const partitions = partitionsPart();
  const time = timePart();
  const settings = h("dl", { class: "facts settings" });
  const whole = [
    h("div", { class: "topic-split" }, census.element, compaction.element),
    partitions.element,
    time.element,
    card("Settings", settings),
  ];
  const body = h("div", { class: "stack" }, loading(name));

  /** Asks only for a topic that the cluster has: a browser logs every 404 as an error. */
  function begin() {
    const { value } = shell.cluster;
    isMissing = value?.state === "connected" && !value.topics.some((each) => each.name === name);
    if (poll === null && !isMissing && (value || shell.cluster.problem))
      poll = new Poll(`/topics/${encodeURIComponent(name)}`, () => soon(draw));
  }

  function draw() {
    begin();
    const topic = poll?.value;
    if (!topic) {
      if (isMissing)
        fill(
          body,
          note(
            "absent",
            `There is no topic ${name} in this cluster.`,
            "It may have been deleted. See the list of topics.",
          ),
        );
      else if (poll?.problem) fill(body, problemNote(poll.problem, name));
      return;
    }
    if (!whole[0].isConnected) fill(body, whole);
    fill(
      facts,
      `${topic.cleanup_policy ?? "policy unknown"} · ${bytes(topic.bytes)} · `,
      isKnown(topic.records_per_s) && topic.state === "connected"
        ? topic.records_per_s
          ? rate(topic.records_per_s)
          : "nothing new"
        : "rate unknown",
      (topic.tables ?? []).map((table, at) => [
        at ? ", " : " · table ",
        h("a", { href: href(["tables", table]) }, table),
        isKnown(topic.rows?.[table]) ? ` (${plural(topic.rows[table], "row")})` : "",
      ]),
      " · as of ",
      since(topic.at),
    );
    census.draw(topic);
    compaction.draw(topic);
    partitions.draw(topic);
    time.draw(topic.history ?? []);
    drawSettings(settings, topic.settings, topic.why);
  }
  draw();
  return {
    element: h(
      "div",
      {},
      h("a", { class: "crumb", href: href(["topics"]) }, "Topics"),
      h("div", { class: "head" }, h("h1", {}, name), facts),
      body,
    ),
    title: () => name,
    news: () => soon(draw),
    close: () => {
      never(draw);
      poll?.close();
    },
  };
}

function censusPart() {
  const headline = h("p", { class: "headline" });
  const bar = h("div", { class: "census-bar", role: "img" });
  const figures = h("dl", { class: "facts census-facts" });
  const when = h("p", { class: "soft small" });
  const element = card("Census", headline, bar, figures, when);
  const draw = ({ census, census_why: why, cleanup_policy: policy }) => {
    if (!census) {
      setText(headline, "The number of obsolete records is not known yet.");
      bar.hidden = true;
      fill(figures, fact("obsolete-share", "Obsolete", null, share, why));
      setText(when, `Reason: ${why ?? "not counted yet"}.`);
      return;
    }
    const isCompacted = isCleanedByKey(policy);
    setText(headline, headlineOf(census, isCompacted, policy));
    bar.hidden = census.records === 0 || !isCompacted;
    setAttribute(bar, "aria-label", MARKS.map(([, words, field]) => `${count(census[field])} ${words}`).join(", "));
    fill(
      bar,
      MARKS.filter(([, , field]) => census[field] > 0).map(([kind, , field]) =>
        h("span", { class: `census-${kind}`, style: { "flex-grow": String(census[field]) } }),
      ),
    );
    fill(
      figures,
      fact("live-keys", "Live keys", census.live_keys, count),
      isCompacted ? fact("obsolete", "Obsolete", census.obsolete, count) : null,
      fact("tombstones", "Tombstones", census.tombstones, count),
      fact("records", "Records present", census.records, count),
      fact("duplicate-factor", "Records for each live key", census.duplicate_factor, times, "there is no live key"),
      fact("tombstone-share", "Tombstones of all", census.tombstone_share, share, "there is no record"),
      isCompacted
        ? fact("obsolete-share", "Obsolete of all", census.obsolete_share, share, "there is no record")
        : null,
    );
    fill(when, "Counted ", since(census.at), ".", why ? ` Since then: ${why}.` : "");
  };
  return { element, draw };
}

/** Only on a compacted topic does a newer record with the same key make a record obsolete. */
const isCleanedByKey = (policy) => (policy ?? "").includes("compact");

function headlineOf({ records, obsolete, obsolete_share: part }, isCompacted, policy) {
  if (records === 0) return "The topic has no records.";
  if (!isCompacted) {
    return `${plural(records, "record")}. cleanup.policy is ${policy ?? "unknown"}: Kafka deletes records by age or size, not by key.`;
  }
  if (obsolete === 0) return `Nothing is obsolete: each of ${plural(records, "record")} is the newest of its key.`;
  const sentence = `${share(part)} is obsolete: ${count(obsolete)} of ${plural(records, "record")}`;
  return `${sentence} ${obsolete === 1 ? "has" : "have"} a newer record with the same key.`;
}

function fact(kind, term, value, format, why = "not counted yet") {
  return h(
    "div",
    { "data-census": kind },
    h("dt", {}, h("span", { class: `swatch census-${kind}`, "aria-hidden": "true" }), term),
    h("dd", {}, figure(value, format, why)),
  );
}

function partitionsPart() {
  const columns = ["Log start", "Log end", "Records", "Live keys", "Obsolete", "Tombstones", "Bytes"];
  const { element: frame, body } = sheet(
    "Partitions",
    [
      { name: "Partition" },
      ...columns.map((each) => ({ name: each, class: "num" })),
      { name: "Leader", class: "num" },
      { name: "In-sync replicas" },
    ],
    { "data-narrow": "cards" },
  );
  const element = card("Partitions", frame);
  const draw = ({ partitions, census_why: why, cleanup_policy: policy }) => {
    const words = JSON.stringify([partitions, why, policy]);
    if (body.dataset.words === words) return;
    body.dataset.words = words;
    fill(
      body,
      (partitions ?? []).map((each) => {
        const cell = (label, value, format = count, because = why ?? "not counted yet") =>
          h("td", { role: "cell", class: "num", "data-label": label }, figure(value, format, because));
        const isShort = each.in_sync && each.replicas && each.in_sync.length < each.replicas.length;
        return h(
          "tr",
          { role: "row", "data-partition": each.partition },
          h("th", { role: "rowheader", scope: "row" }, each.partition),
          cell("Log start", each.start),
          cell("Log end", each.end),
          cell("Records", each.records),
          cell("Live keys", each.live_keys),
          isCleanedByKey(policy)
            ? cell("Obsolete", each.obsolete)
            : h("td", { role: "cell", class: "num soft", "data-label": "Obsolete" }, "not by key"),
          cell("Tombstones", each.tombstones),
          cell("Bytes", each.bytes, bytes, "the brokers do not report it"),
          h(
            "td",
            { role: "cell", class: "num", "data-label": "Leader" },
            isKnown(each.leader) && each.leader >= 0
              ? `broker ${each.leader}`
              : h("span", { class: "warned" }, "▲ none"),
          ),
          h(
            "td",
            { role: "cell", class: isShort ? "warned" : null, "data-label": "In sync" },
            isShort ? "▲ " : "",
            `${(each.in_sync ?? []).join(", ") || "none"} of ${(each.replicas ?? []).join(", ")}`,
          ),
        );
      }),
    );
  };
  return { element, draw };
}

function timePart() {
  const lines = [
    ["bytes", "Bytes", bytes],
    ["lag", "Lag of its table", count],
    ["end", "Log end", count],
  ].map(([field, label, format]) => {
    const spark = sparkline({ width: 480, height: 72, zero: field === "lag" });
    const now = h("dd", {});
    const range = h("p", { class: "soft small" });
    return {
      field,
      label,
      format,
      spark,
      now,
      range,
      element: h("div", { class: "over-time" }, h("dl", {}, h("dt", {}, label), now), spark.element, range),
    };
  });
  const draw = (history) => {
    for (const { field, label, format, spark, now, range } of lines) {
      const points = history.map((each) => ({ at: each.at, value: each[field] ?? null }));
      const known = points.filter((point) => isKnown(point.value));
      const values = known.map((point) => point.value);
      setFigure(now, known.at(-1)?.value ?? null, format, "not known");
      const sentence =
        known.length > 1
          ? `${hour(known[0].at)} to ${hour(known.at(-1).at)} (${lasting(known.at(-1).at - known[0].at)}): between ${format(Math.min(...values))} and ${format(Math.max(...values))}`
          : field === "lag" && !known.length
            ? "Unknown: no table of this topic is served here."
            : "A line appears after the second measurement, in ten seconds.";
      setText(range, sentence);
      spark.draw(points, `${label} over time. ${sentence}`);
    }
  };
  return {
    element: h(
      "section",
      { class: "card", "aria-label": "Over time" },
      h("div", { class: "card-head" }, h("h2", {}, "Over time")),
      h(
        "div",
        { class: "card-body over-times" },
        lines.map((each) => each.element),
      ),
    ),
    draw,
  };
}

function drawSettings(list, settings, why) {
  const words = JSON.stringify(settings ?? why);
  if (list.dataset.words === words) return;
  list.dataset.words = words;
  if (!settings) return fill(list, h("p", { class: "unknown" }, `unknown: ${why ?? "the cluster does not report them"}`));
  const all = Object.entries(settings);
  fill(
    list,
    all.length
      ? all.map(([name, each]) =>
          h(
            "div",
            {},
            h("dt", { class: "mono" }, name),
            h("dd", { class: "mono" }, each.value ?? "unknown", h("span", { class: "soft" }, ` ${each.source ?? ""}`)),
          ),
        )
      : h("p", { class: "soft" }, "All settings are Kafka's defaults."),
  );
}
