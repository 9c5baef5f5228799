"""Every error code that is sent over HTTP: its status, what it means, and the usual hint.

A new code is a new row here. The page docs/http.md and the OpenAPI document take their codes from this table.
"""

from __future__ import annotations

from typing import NamedTuple

_ASK_AGAIN = "ask again soon"
_SEND_AGAIN = "send it again soon"


class ErrorCode(NamedTuple):
    status: int
    # For people who read the documentation.
    meaning: str
    # What to do; a Refused may have a better hint.
    hint: str


ERROR_CODES: dict[str, ErrorCode] = {
    "bad_path": ErrorCode(
        400,
        "The path is not UTF-8.",
        "percent-encode the UTF-8 bytes of the key; a key with U+FFFD is found with /rows?start=",
    ),
    "bad_query": ErrorCode(
        400,
        "A parameter is unknown, given twice, badly encoded or out of range.",
        "the parameters of each path are in /openapi.json",
    ),
    "bad_key": ErrorCode(
        400,
        "The table's codec can't encode this key, or could not read it back after a put.",
        "write the key in the form of the table's codec",
    ),
    "bad_position": ErrorCode(400, "The text is not a position.", "a position is written like 0:18,1:5"),
    "bad_cursor": ErrorCode(
        400,
        "The cursor was altered, or belongs to another query.",
        "give it as it came, with the same prefix, start and end; or begin without one",
    ),
    "bad_value": ErrorCode(
        400,
        "The body is not a value of this table's codec.",
        "send a value as JSON, as this table shows it; DELETE removes a row",
    ),
    "not_conditional": ErrorCode(
        400,
        "A write has `If-Match` or the like: Kafka has no compare-and-set.",
        "send it without If-Match, If-None-Match and If-Unmodified-Since",
    ),
    "bad_line": ErrorCode(
        400,
        "A line of the body has a mistake; the message has its number. Nothing was written.",
        "nothing was written; put it right and send all of it, each row on its own line (curl: --data-binary)",
    ),
    "body_broken": ErrorCode(
        400,
        "The connection ended before the whole body had come. Nothing was written.",
        "nothing was written: send it again",
    ),
    "unauthorized": ErrorCode(
        401,
        "The token is missing, or the server does not know it.",
        "send a token of the server in the header  Authorization: Bearer TOKEN",
    ),
    "forbidden": ErrorCode(403, "The token may only read.", "use a token that may write"),
    "cross_origin": ErrorCode(
        403,
        "A browser writes for a page of another address: `Origin` or `Sec-Fetch-Site` does not match `Host`.",
        "open the console at this server's own address, or write without a browser; a proxy must pass Host on",
    ),
    "bad_host": ErrorCode(
        403,
        "The header `Host` is not a loopback name.",
        "use the address 127.0.0.1, or start the server with --token-file",
    ),
    "no_such_route": ErrorCode(
        404,
        "Nothing is served at this path.",
        "the tables are listed at /tables; a row is at /tables/NAME/rows/KEY",
    ),
    "no_such_table": ErrorCode(404, "The server has no table of this name.", "the tables are listed at /tables"),
    "no_such_topic": ErrorCode(
        404,
        "The cluster has no topic of this name, or does not show it to this server. A new topic is seen after some "
        "seconds.",
        "the topics that this server sees are at /cluster",
    ),
    "key_not_found": ErrorCode(404, "The table has no row of this key.", "keys are percent-encoded"),
    "method_not_allowed": ErrorCode(405, "The path does not take this method; `Allow` says which it takes.", ""),
    "body_too_slow": ErrorCode(408, "The body did not come in time.", "send it again"),
    "not_local": ErrorCode(
        409,
        "Topics are compacted only on a local cluster of the server's home.",
        "run  lastword topic compact  on the machine of the cluster",
    ),
    "not_compacted": ErrorCode(
        409,
        "The `cleanup.policy` of the topic is not `compact`.",
        "change it with  lastword topic alter NAME --set cleanup.policy=compact",
    ),
    "already_running": ErrorCode(
        409, "Another compaction is running; the server runs one at a time.", "wait until it has ended"
    ),
    "too_large": ErrorCode(
        409,
        "The topic has more than 2,000,000 records or 1 GiB. `lastword topic compact` has no such limit.",
        "compact it with  lastword topic compact NAME",
    ),
    "topic_changed": ErrorCode(
        409,
        "A write: the topic of this table was deleted, or created again.",
        "read the row, because the write may have succeeded; write again once the table is ready",
    ),
    "position_gone": ErrorCode(
        410,
        "Changes since this position can't be given without loss.",
        "read the rows again, and go on from their position",
    ),
    "body_too_large": ErrorCode(413, "The body is longer than the limit.", "rows can be sent in several bodies"),
    "value_too_large": ErrorCode(413, "The topic does not take a value of this size.", "send a smaller value"),
    "key_too_long": ErrorCode(414, "The key is longer than the limit.", "use a shorter key"),
    "query_too_long": ErrorCode(414, "The query is longer than the limit.", "send a shorter query"),
    "internal": ErrorCode(500, "The server made a mistake; its log says more.", "see the server's log"),
    "write_failed": ErrorCode(502, "The cluster refused the write.", "ask the owner of this server"),
    "cluster_unreachable": ErrorCode(
        503, "A write was not acknowledged in time, or changes can't be read from the cluster.", _ASK_AGAIN
    ),
    "not_enough_replicas": ErrorCode(
        503,
        "A write: fewer replicas are in sync than the topic's `min.insync.replicas`, because a broker is away.",
        "send it again when all brokers run; ask the cluster's owner",
    ),
    "too_many_writes": ErrorCode(503, "Too many writes wait for the cluster.", _SEND_AGAIN),
    "not_ready": ErrorCode(503, "The table can't be read yet, or the cluster does not answer.", _ASK_AGAIN),
    "too_many_unsent": ErrorCode(
        503,
        "Too many large answers wait for their clients to read them; `Retry-After` says when to ask again.",
        "read the answers that you asked for; ask again soon",
    ),
    "too_many_waiting": ErrorCode(503, "Too many reads wait for a `min_position`.", _ASK_AGAIN),
    "too_many_streams": ErrorCode(503, "Too many change streams are open.", "ask again later"),
    "fell_behind": ErrorCode(
        503,
        "In a stream: the client reads slowly, and the server no longer keeps its next changes.",
        "go on from the last id, and read faster",
    ),
    "table_failed": ErrorCode(503, "The table failed and can't recover without help.", "see the server's log"),
    "store_damaged": ErrorCode(
        503,
        "The server's copy of the table is damaged. It is built again from Kafka; until then reads are `not_ready`.",
        _ASK_AGAIN,
    ),
    "stopping": ErrorCode(503, "The server is being stopped.", "ask again soon, here or elsewhere"),
    "position_not_reached": ErrorCode(504, "The table did not reach `min_position` in time.", "ask again"),
}


def error_codes_markdown() -> str:
    """The table of docs/http.md."""
    rows = [f"| {each.status} | `{code}` | {each.meaning} | {each.hint} |" for code, each in ERROR_CODES.items()]
    return "\n".join(["| status | code | when | usual hint |", "|---|---|---|---|", *rows])
