/**
 * The problems, in words, with the next step. Only causes are shown: while Kafka is away, the page does not say that
 * tables and pipelines wait for Kafka.
 */

import { count, isKnown, lasting, now } from "./format.js";

/** @typedef {{kind: string, what: string, next: (string|{command: string})[], isInfo?: boolean, action?: string}} Trouble */

const STATUS = { command: "lastword status" };
// A pipeline that would need longer than this at its present rate has fallen behind.
const BEHIND_S = 30;
// A pipeline that started less than this ago may not have read anything yet.
const STARTING_MS = 60_000;
// A table notices that Kafka is away before the server does: until this time has passed, Kafka may be the cause.
const PATIENCE_MS = 8_000;

/** When each table lost its topic. */
const lostSince = new Map();

/**
 * @param {{link: any, cluster: import("./poll.js").Poll, tables: import("./poll.js").Poll, isDeclined: boolean, host: string}} known
 * @returns {Trouble[]}
 */
export function troubles({ link, cluster, tables, isDeclined, host }) {
  if (link.state === "lost") return [noServer(link, host)];
  if (isDeclined) {
    return [
      {
        kind: "token",
        what: "This server requires a token.",
        next: ["Without a token this page shows nothing."],
        action: "Enter a token",
      },
    ];
  }
  const problems = [];
  const answer = cluster.value;
  if (answer?.state === "away") return [awayCluster(answer, tables.value)];
  if (answer?.state === "connecting") {
    problems.push({
      kind: "cluster",
      isInfo: true,
      what: "The server has not reached Kafka yet.",
      next: [answer.why ?? "The server keeps trying.", " Is Kafka running? ", STATUS],
    });
  }
  if (answer?.state === "connected" && answer.why)
    problems.push({
      kind: "cluster",
      isInfo: true,
      what: "The server sees only a part of the cluster.",
      next: [sentence(answer.why)],
    });
  for (const table of tables.value?.tables ?? []) problems.push(...ofTable(table, answer?.state === "connecting"));
  for (const pipeline of answer?.pipelines ?? []) problems.push(...ofPipeline(pipeline));
  for (const topic of answer?.topics ?? []) problems.push(...ofTopic(topic));
  for (const [poll, name] of [
    [cluster, "the cluster"],
    [tables, "the tables"],
  ]) {
    if (poll.problem?.status >= 500) {
      problems.push({
        kind: "server",
        what: `The server can't read ${name}: ${poll.problem.message}.`,
        next: [poll.problem.hint || "The page asks again every two seconds."],
      });
    }
  }
  return problems;
}

function noServer(link, host) {
  const since = link.lastAnswer === null ? "" : ` for ${lasting(Date.now() - link.lastAnswer)}`;
  return {
    kind: "server",
    what: `No answer from the server at ${host}${since}.`,
    next: [
      link.lastAnswer === null ? "" : "The page shows the last answer, and reconnects by itself. ",
      "See what runs: ",
      STATUS,
      ", and start what is missing: ",
      { command: "lastword up --detach" },
    ],
  };
}

function awayCluster(answer, tables) {
  const rows = (tables?.tables ?? []).filter((table) => isKnown(table.rows)).length;
  const since = isKnown(answer.at) ? ` for ${lasting(now() - answer.at)}` : "";
  return {
    kind: "cluster",
    what: `Kafka has not answered${since}: no new records arrive, and nothing can be written.`,
    next: [
      answer.is_local || !answer.why ? "The server keeps trying. " : `${sentence(answer.why)} `,
      rows ? "The tables can still be read, as of that time." : "",
      ...(answer.is_local ? [" What runs here, and what was restarted: ", STATUS] : []),
    ],
  };
}

function ofTable(table, isExpected) {
  if (table.state === "failed") {
    return [
      {
        kind: "table",
        what: `The table ${table.name} has failed: its rows are not updated any more.`,
        next: [sentence(table.why ?? ""), " What runs here: ", STATUS],
      },
    ];
  }
  if (table.state === "rebuilding") {
    return [
      {
        kind: "table",
        what: `The table ${table.name} is being rebuilt${progress(table)}.`,
        next: [sentence(table.why ?? ""), " Its rows can't be read until the rebuild is complete."],
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
          " Does the topic exist? ",
          { command: `lastword topic describe ${table.topic}` },
        ],
      },
    ];
  }
  if (table.state === "catching-up") {
    const left = isKnown(table.seconds_left) ? ` About ${lasting(table.seconds_left * 1000)} left.` : "";
    return [
      {
        kind: "table",
        isInfo: true,
        what: `The table ${table.name} is catching up${progress(table)}.`,
        next: [`Until then its rows are older than the topic.${left}`],
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
        what: `The pipeline ${pipeline.app} has not reported${since}: its counters do not change.`,
        next: ["After a restart it continues from its last commit: ", STATUS],
      },
    ];
  }
  if (!isKnown(pipeline.lag)) {
    return [
      {
        kind: "pipeline",
        isInfo: true,
        what: `The lag of the pipeline ${pipeline.app} behind ${pipeline.source} is not known yet.`,
        next: ["The pipeline reports every two seconds."],
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
            ? `At ${count(pipeline.rate)} records per second it catches up in ${lasting(needs * 1000)}, if no more arrive.`
            : isStarting
              ? `It has just started, in generation ${pipeline.generation}, and continues from its last commit.`
              : "It reads nothing now: find its log with ",
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
        next: ["They can't be read or written until a broker with a replica is back: ", STATUS],
      },
    ];
  }
  if (topic.under_replicated) {
    return [
      {
        kind: "topic",
        what: `${topic.name}: ${count(topic.under_replicated)} of ${count(topic.partitions)} partitions have too few in-sync replicas.`,
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
