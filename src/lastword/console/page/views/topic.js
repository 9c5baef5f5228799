/**
 * One topic: where its log begins and ends, what of it is still of use, and compaction on demand. What nobody has counted
 * is unknown, and says why.
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

  /** Asks only for a topic that the cluster has: a browser takes every 404 for an error. */
  function begin() {
    const { value } = shell.cluster;
    isMissing = value?.state === "connected" && !value.topics.some((topic) => topic.name === name);
    if (poll === null && !isMissing && (value || shell.cluster.problem))
      poll = new Poll(`/topics/${encodeURIComponent(name)}`, () => soon(draw));
  }

  function draw() {
    begin();
    const told = poll?.value;
    if (!told) {
      if (isMissing)
        fill(
          body,
          note(
            "absent",
            `There is no topic ${name} in this cluster.`,
            "It may have been deleted. Those that are there are in the list of topics.",
          ),
        );
      else if (poll?.problem) fill(body, problemNote(poll.problem, name));
      return;
    }
    if (!whole[0].isConnected) fill(body, whole);
    fill(
      facts,
      `${told.cleanup_policy ?? "policy unknown"} · ${bytes(told.bytes)} · `,
      isKnown(told.records_per_s) && told.state === "connected"
        ? told.records_per_s
          ? rate(told.records_per_s)
          : "nothing new"
        : "rate unknown",
      (told.tables ?? []).map((table, at) => [
        at ? ", " : " · table ",
        h("a", { href: href(["tables", table]) }, table),
        isKnown(told.rows?.[table]) ? ` (${plural(told.rows[table], "row")})` : "",
      ]),
      " · as of ",
      since(told.at),
    );
    census.draw(told);
    compaction.draw(told);
    partitions.draw(told);
    time.draw(told.history ?? []);
    drawSettings(settings, told.settings, told.why);
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
      setText(headline, "How much of it is obsolete is not known yet.");
      bar.hidden = true;
      fill(figures, fact("obsolete-share", "Obsolete", null, share, why));
      setText(when, `Why: ${why ?? "nobody has counted it"}.`);
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

/** Only where compaction cleans is a record obsolete because a later one has its key. */
const isCleanedByKey = (policy) => (policy ?? "").includes("compact");

function headlineOf({ records, obsolete, obsolete_share: part }, isCompacted, policy) {
  if (records === 0) return "There is no record in it.";
  if (!isCompacted) {
    return `${plural(records, "record")}. Its policy is ${policy ?? "not known"}: they go with age or size, not by key.`;
  }
  if (obsolete === 0) return `Nothing is obsolete: each of ${plural(records, "record")} is the last of its key.`;
  const told = `${share(part)} is obsolete: ${count(obsolete)} of ${plural(records, "record")}`;
  return `${told} ${obsolete === 1 ? "has" : "have"} a later one of the same key.`;
}

function fact(kind, term, value, tell, why = "not counted yet") {
  return h(
    "div",
    { "data-census": kind },
    h("dt", {}, h("span", { class: `swatch census-${kind}`, "aria-hidden": "true" }), term),
    h("dd", {}, figure(value, tell, why)),
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
      { name: "In sync of copies" },
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
        const cell = (label, value, tell = count, because = why ?? "not counted yet") =>
          h("td", { role: "cell", class: "num", "data-label": label }, figure(value, tell, because));
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
          cell("Bytes", each.bytes, bytes, "the brokers have not told it"),
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
  ].map(([field, label, tell]) => {
    const spark = sparkline({ width: 480, height: 72, zero: field === "lag" });
    const now = h("dd", {});
    const range = h("p", { class: "soft small" });
    return {
      field,
      label,
      tell,
      spark,
      now,
      range,
      element: h("div", { class: "over-time" }, h("dl", {}, h("dt", {}, label), now), spark.element, range),
    };
  });
  const draw = (history) => {
    for (const { field, label, tell, spark, now, range } of lines) {
      const points = history.map((each) => ({ at: each.at, value: each[field] ?? null }));
      const known = points.filter((point) => isKnown(point.value));
      const values = known.map((point) => point.value);
      setFigure(now, known.at(-1)?.value ?? null, tell, "not known");
      const told =
        known.length > 1
          ? `${hour(known[0].at)} to ${hour(known.at(-1).at)} (${lasting(known.at(-1).at - known[0].at)}): between ${tell(Math.min(...values))} and ${tell(Math.max(...values))}`
          : field === "lag" && !known.length
            ? "Not known: no table of this topic is served here."
            : "A line appears after the second look, ten seconds on.";
      setText(range, told);
      spark.draw(points, `${label} over time. ${told}`);
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
  if (!settings) return fill(list, h("p", { class: "unknown" }, `unknown: ${why ?? "the cluster has not told them"}`));
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
      : h("p", { class: "soft" }, "All are as Kafka has them."),
  );
}
