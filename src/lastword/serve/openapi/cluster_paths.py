"""The cluster and its topics in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable

from lastword.kafka.compaction.on_demand import STEPS
from lastword.serve.openapi.operations import done, operation, reading
from lastword.serve.openapi.schemas import COUNT, TIME, Node, closed, ref

_TEXT: Node = {"type": "string"}
_MAYBE_TEXT: Node = {"type": ["string", "null"]}
_MAYBE_COUNT: Node = {**COUNT, "type": ["integer", "null"]}
_COUNTED: Node = {**_MAYBE_COUNT, "description": "As it was counted last."}
_MAYBE_TIME: Node = {**TIME, "type": ["integer", "null"]}
_RATE: Node = {"type": ["number", "null"], "minimum": 0}
_NAMES: Node = {"type": "array", "items": _TEXT}
_WHY: Node = {**_MAYBE_TEXT, "description": "What is not known, and what to do about it."}
_AT = 1_767_225_600_000

_EXAMPLE: Node = {
    "at": _AT,
    "state": "connected",
    "why": None,
    "cluster_id": "5L6g3nShT-eMCtK--X86sw",
    "is_local": True,
    "brokers": [{"id": 1, "address": "127.0.0.1:9092"}],
    "controller": 1,
    "topics": [
        {
            "name": "user-profiles",
            "topic_id": "x8uVfLZNQmG1nRbYpKs0Tw",
            "cleanup_policy": "compact",
            "partitions": 3,
            "replication": 1,
            "start_to_end": 12_000,
            "bytes": 123_456,
            "records_per_s": 12.5,
            "under_replicated": 0,
            "leaderless": 0,
            "tables": ["users"],
        }
    ],
    "pipelines": [],
    "history": [{"at": _AT, "bytes": 123_456, "lag": 0}],
}


_TOPIC_EXAMPLE: Node = {
    "name": "user-profiles",
    "topic_id": "x8uVfLZNQmG1nRbYpKs0Tw",
    "at": _AT,
    "state": "connected",
    "why": None,
    "cleanup_policy": "compact",
    "tables": ["users"],
    "settings": {"segment.ms": {"value": "10000", "source": "topic"}},
    "bytes": 123_456,
    "records_per_s": 12.5,
    "partitions": [],
    "census": None,
    "census_why": "being counted",
    "rows": {"users": 3600},
    "compaction": None,
    "history": [{"at": _AT, "bytes": 123_456, "end": 12_000, "lag": 0}],
}
_NAMED: Node = {
    "name": "topic",
    "in": "path",
    "required": True,
    # Kafka has no topic named . or .. either.
    "schema": {"type": "string", "maxLength": 249, "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$"},
    "example": "user-profiles",
}


def cluster_paths(guests: Iterable[str]) -> Node:
    example = _EXAMPLE | dict.fromkeys(guests, False)
    begun = done(closed({"state": {"const": "running"}, "began": TIME}), {"state": "running", "began": _AT})
    compact = operation(
        "post_topic_compact",
        "Have a topic of a local cluster compacted now; how it goes is told with the topic",
        begun,
        parameters=[_NAMED],
        codes=(
            *("bad_path", "no_such_route", "no_such_topic", "not_ready", "stopping", "not_conditional"),
            *("cross_origin", "not_local", "not_compacted", "already_running", "too_large"),
        ),
    )
    compact["responses"] = {"202": {**begun, "description": "It has begun."}}
    return {
        "/topics/{topic}/compact": {"post": compact},
        "/cluster": reading("cluster", "The cluster as it was seen last", done(ref("cluster"), example)),
        "/topics/{topic}": reading(
            "topic",
            "One topic, which is counted then: the next answer may have its census",
            done(ref("topic"), _TOPIC_EXAMPLE),
            parameters=[_NAMED],
            codes=("bad_path", "no_such_route", "no_such_topic", "not_ready", "stopping"),
        ),
    }


def cluster_schemas(guests: Iterable[str]) -> Node:
    return {"cluster": _cluster(guests), "pipeline": _pipeline(), "topic": _topic()}


def _cluster(guests: Iterable[str]) -> Node:
    present = {name: {"type": "boolean", "description": f"Whether /{name} is served here."} for name in guests}
    topic = closed(
        {
            "name": _TEXT,
            "topic_id": _TEXT,
            "cleanup_policy": {**_MAYBE_TEXT, "description": "null without the right to read settings."},
            "partitions": COUNT,
            "replication": COUNT,
            "start_to_end": {**_MAYBE_COUNT, "description": "End minus start offsets: records there are at most."},
            "bytes": {**_MAYBE_COUNT, "description": "On disk, of one copy; null without the right to see it."},
            "records_per_s": {**_RATE, "description": "How fast its end offsets grow."},
            "under_replicated": {**COUNT, "description": "Partitions with a replica that is not in sync."},
            "leaderless": COUNT,
            "tables": {**_NAMES, "description": "Served from it."},
        }
    )
    return closed(
        {
            "at": {**_MAYBE_TIME, "description": "When it was so, in ms; null before it was seen."},
            "state": {"enum": ["connecting", "connected", "away"], "description": "away: all is as it was at `at`."},
            "why": _WHY,
            "cluster_id": _MAYBE_TEXT,
            "is_local": {"type": ["boolean", "null"], "description": "Whether it lives in this server's home."},
            "brokers": {"type": "array", "items": closed({"id": COUNT, "address": _TEXT})},
            "controller": _MAYBE_COUNT,
            "topics": {"type": "array", "items": topic},
            **present,
            "pipelines": {"type": "array", "items": ref("pipeline")},
            "history": _history("bytes", "lag"),
        }
    )


def _topic() -> Node:
    numbers = ("records", "live_keys", "tombstones")
    partition = closed(
        {
            "partition": COUNT,
            "leader": _MAYBE_COUNT,
            "replicas": {"type": "array", "items": COUNT},
            "in_sync": {"type": "array", "items": COUNT},
            **dict.fromkeys(("start", "end", "stable", "bytes"), _MAYBE_COUNT),
            **dict.fromkeys((*numbers, "obsolete"), _COUNTED),
        }
    )
    shares = dict.fromkeys(("obsolete_share", "duplicate_factor", "tombstone_share"), _RATE)
    obsolete = {**_MAYBE_COUNT, "description": "null where the topic is not compacted, or that is not known."}
    counted = {"at": TIME, **dict.fromkeys(numbers, COUNT), "obsolete": obsolete, **shares}
    census = {**closed(counted), "type": ["object", "null"]}
    setting = closed({"value": _TEXT, "source": {"enum": ["topic", "broker", "default"]}})
    return closed(
        {
            "name": _TEXT,
            "topic_id": _TEXT,
            "at": TIME,
            "state": {"enum": ["connected", "away"]},
            "why": _WHY,
            "cleanup_policy": _MAYBE_TEXT,
            "tables": _NAMES,
            "settings": {
                "type": ["object", "null"],
                "additionalProperties": setting,
                "description": "Those about compaction and those that were set; null without the right to read them.",
            },
            "bytes": _MAYBE_COUNT,
            "records_per_s": _RATE,
            "partitions": {"type": "array", "items": partition},
            "census": {**census, "description": "What was counted last: records that are really there."},
            "census_why": {**_MAYBE_TEXT, "description": "Why there is none, or no newer one."},
            "rows": {"type": "object", "additionalProperties": _MAYBE_COUNT},
            "compaction": _compaction(),
            "history": _history("bytes", "end", "lag"),
        }
    )


def _compaction() -> Node:
    held = closed({"bytes": _MAYBE_COUNT, "records": _MAYBE_COUNT})
    told = closed(
        {
            "state": {"enum": ["running", "done", "failed"]},
            "began": TIME,
            "ended": _MAYBE_TIME,
            "step": {"enum": [*STEPS, None]},
            "why": {**_MAYBE_TEXT, "description": "What failed, why it is not smaller, or which records of ours stay."},
            "before": held,
            "after": {**held, "type": ["object", "null"]},
        }
    )
    return {**told, "type": ["object", "null"], "description": "The last that was asked for here."}


def _pipeline() -> Node:
    return closed(
        {
            "app": _TEXT,
            "table": {**_TEXT, "description": "The served table that has its status."},
            "state": {"enum": ["running", "silent"], "description": "silent: no new status for 10 s."},
            "at": TIME,
            "started": TIME,
            "generation": COUNT,
            "source": _TEXT,
            "emits": {"type": ["array", "null"], "items": _TEXT, "description": "null where its status lacks it."},
            "keeps": _NAMES,
            "rate": {"type": "number", "minimum": 0},
            "lag": _MAYBE_COUNT,
            "valid": COUNT,
            "rejected": COUNT,
            "batch": {"type": "object"},
            "events": {"type": "array"},
        }
    )


def _history(*names: str) -> Node:
    fields = {"at": TIME, **dict.fromkeys(names, _MAYBE_COUNT)}
    told = "A sample every 10 s, of the last hour, the oldest first."
    return {"type": "array", "items": closed(fields), "maxItems": 360, "description": told}
