/**
 * What is wrong, in words, with the next step. Only causes are told: while Kafka is away, that the tables and the
 * pipeline wait for it is no news.
 */

import { count, isKnown, lasting, now } from "./format.js";

/** @typedef {{kind: string, what: string, next: (string|{command: string})[], isInfo?: boolean, action?: string}} Trouble */

const STATUS = { command: "lastword status" };
// A pipeline that would need longer than this at its present rate has fallen behind.
const BEHIND_S = 30;
// So long a pipeline that was started may read nothing yet.
const STARTING_MS = 60_000;
// A table notices that Kafka is away before the server says so: for so long that may be the cause.
const PATIENCE_MS = 8_000;

/** Since when tables have been without their topics. */
const lostSince = new Map();

/**
 * @param {{link: any, cluster: import("./poll.js").Poll, tables: import("./poll.js").Poll, isDeclined: boolean, host: string}} seen
 * @returns {Trouble[]}
 */
export function troubles({ link, cluster, tables, isDeclined, host }) {
  if (link.state === "lost") return [noServer(link, host)];
  if (isDeclined) {
    return [
      {
        kind: "token",
        what: "This server asks for a token, and has none from you.",
        next: ["Without one it shows nothing."],
        action: "Enter a token",
      },
    ];
  }
  const found = [];
  const seen = cluster.value;
  if (seen?.state === "away") return [awayCluster(seen, tables.value)];
  if (seen?.state === "connecting") {
    found.push({
      kind: "cluster",
      isInfo: true,
      what: "The server has not reached Kafka yet.",
      next: [seen.why ?? "It goes on trying.", " Does it run? ", STATUS],
    });
  }
  if (seen?.state === "connected" && seen.why)
    found.push({
      kind: "cluster",
      isInfo: true,
      what: "The server does not see all of the cluster.",
      next: [sentence(seen.why)],
    });
  for (const table of tables.value?.tables ?? []) found.push(...ofTable(table, seen?.state === "connecting"));
  for (const pipeline of seen?.pipelines ?? []) found.push(...ofPipeline(pipeline));
  for (const topic of seen?.topics ?? []) found.push(...ofTopic(topic));
  for (const [poll, name] of [
    [cluster, "the cluster"],
    [tables, "its tables"],
  ]) {
    if (poll.problem?.status >= 500) {
      found.push({
        kind: "server",
        what: `The server can't tell about ${name}: ${poll.problem.message}.`,
        next: [poll.problem.hint || "The page asks again every two seconds."],
      });
    }
  }
  return found;
}

function noServer(link, host) {
  const since = link.lastAnswer === null ? "" : ` for ${lasting(Date.now() - link.lastAnswer)}`;
  return {
    kind: "server",
    what: `No answer from the server at ${host}${since}.`,
    next: [
      link.lastAnswer === null ? "" : "What you see is from before that. The page comes back by itself. ",
      "See what runs: ",
      STATUS,
      ", and start what does not: ",
      { command: "lastword up --detach" },
    ],
  };
}

function awayCluster(seen, tables) {
  const rows = (tables?.tables ?? []).filter((table) => isKnown(table.rows)).length;
  const since = isKnown(seen.at) ? ` for ${lasting(now() - seen.at)}` : "";
  return {
    kind: "cluster",
    what: `Kafka has not answered${since}: nothing new arrives, and nothing can be written.`,
    next: [
      seen.is_local || !seen.why ? "The server goes on trying. " : `${sentence(seen.why)} `,
      rows ? "The tables can still be read, as they were then." : "",
      ...(seen.is_local ? [" What runs here, and what is started again: ", STATUS] : []),
    ],
  };
}

function ofTable(table, isExpected) {
  if (table.state === "failed") {
    return [
      {
        kind: "table",
        what: `The table ${table.name} has failed: its rows get older, or there are none.`,
        next: [sentence(table.why ?? ""), " What runs here: ", STATUS],
      },
    ];
  }
  if (table.state === "rebuilding") {
    return [
      {
        kind: "table",
        what: `The table ${table.name} is being rebuilt${progress(table)}.`,
        next: [sentence(table.why ?? ""), " Nothing of it can be read until then."],
      },
    ];
  }
  if (table.state !== "connecting") lostSince.delete(table.name);
  else if (!lostSince.has(table.name)) lostSince.set(table.name, Date.now());
  if (table.state === "connecting" && !isExpected && Date.now() - lostSince.get(table.name) > PATIENCE_MS) {
    return [
      {
        kind: "table",
        what: `The table ${table.name} has lost its topic ${table.topic}.`,
        next: [
          sentence(table.why ?? ""),
          " Is the topic there? ",
          { command: `lastword topic describe ${table.topic}` },
        ],
      },
    ];
  }
  if (table.state === "catching-up") {
    const left = isKnown(table.seconds_left) ? ` About ${lasting(table.seconds_left * 1000)} are left.` : "";
    return [
      {
        kind: "table",
        isInfo: true,
        what: `The table ${table.name} is catching up${progress(table)}.`,
        next: [`Its rows are older than the topic until then.${left}`],
      },
    ];
  }
  return [];
}

function ofPipeline(pipeline) {
  if (pipeline.state === "silent") {
    const since = isKnown(pipeline.at) ? ` for ${lasting(now() - pipeline.at)}` : "";
    return [
      {
        kind: "pipeline",
        what: `The pipeline ${pipeline.app} has said nothing${since}: its counters stand still.`,
        next: ["It goes on at its last commit when it is started again: ", STATUS],
      },
    ];
  }
  if (!isKnown(pipeline.lag)) {
    return [
      {
        kind: "pipeline",
        isInfo: true,
        what: `How far the pipeline ${pipeline.app} is behind ${pipeline.source} is not known yet.`,
        next: ["It says so with one of its next reports, every two seconds."],
      },
    ];
  }
  const isStarting = pipeline.rate === 0 && isKnown(pipeline.started) && now() - pipeline.started < STARTING_MS;
  const needs = pipeline.rate > 0 ? pipeline.lag / pipeline.rate : Infinity;
  if (pipeline.lag > 1000 && needs > BEHIND_S) {
    return [
      {
        kind: "pipeline",
        isInfo: pipeline.rate > 0 || isStarting,
        what: `The pipeline ${pipeline.app} is ${count(pipeline.lag)} records behind ${pipeline.source}.`,
        next: [
          pipeline.rate > 0
            ? `At ${count(pipeline.rate)} a second it takes ${lasting(needs * 1000)} if nothing more comes.`
            : isStarting
              ? `It has just started, in generation ${pipeline.generation}, and goes on at its last commit.`
              : "It reads nothing just now: look at its log with ",
          ...(pipeline.rate > 0 || isStarting ? [] : [STATUS]),
        ],
      },
    ];
  }
  return [];
}

function ofTopic(topic) {
  if (topic.leaderless) {
    return [
      {
        kind: "topic",
        what: `${topic.name}: ${count(topic.leaderless)} of ${count(topic.partitions)} partitions have no leader.`,
        next: ["They can't be read or written until a broker that has them is back: ", STATUS],
      },
    ];
  }
  if (topic.under_replicated) {
    return [
      {
        kind: "topic",
        what: `${topic.name}: ${count(topic.under_replicated)} of ${count(topic.partitions)} partitions have fewer copies than they should.`,
        next: ["A broker is down or slow: ", STATUS],
      },
    ];
  }
  return [];
}

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "");

function progress(table) {
  return isKnown(table.total) ? `: ${count(table.done)} of ${count(table.total)} records` : "";
}
