"""The status row of a pipeline: the value of its one row in the topic `{app}-status`, written every two seconds.

The pipeline writes it; the server's cluster view, the board of the teams, and `lastword up` read it.
"""

from __future__ import annotations

import msgspec

from lastword.core.shapes.json_text import json_text


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The last batch that was committed."""

    tasks: int  # how many Spark tasks shared the batch
    records: int
    seconds: float  # from the start of the batch to its commit
    latency_ms: int | None  # from the newest record's timestamp to the commit; None if the batch had no record


class PipelineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A start, a failure or a takeover."""

    at: int  # milliseconds since 1970
    what: str  # a line for people


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a pipeline is doing. Rows of older versions lack the fields with a default."""

    app: str
    at: int  # when the row was written, in milliseconds since 1970, by the clock of the pipeline
    started: int  # when the pipeline's process started, as `at`
    generation: int  # rises by one with each takeover; 0 until the first takeover is done
    owner: str  # the driver of this generation, in words; empty until the first takeover is done
    source: str  # the topic that is read
    emits: list[str] | None = None  # the topics that the rules write to, each once, in the order of the rules
    position: str  # of the source: all records before it are processed
    lag: int | None  # source records that are not processed yet; None while the end of the source is unknown
    rate: float  # records per second, over the last ten seconds
    valid: int  # records that could be read, ever
    rejected: int  # records that could not be read, ever
    tables: dict[str, dict[str, dict[str, int]]]  # sums by table topic, rule and counter
    most_tasks: int = 0  # tasks of the largest batch ever, also before this start
    batch: BatchStatus
    events: list[PipelineEvent]  # the last ten, the oldest first

    def to_json(self) -> bytes:
        return json_text(self).encode()

    @staticmethod
    def from_json(value: bytes | None) -> PipelineStatus | None:
        """None for a tombstone, and for a row that is damaged or something else; unknown fields are ignored."""
        try:
            return msgspec.json.decode(value or b"", type=PipelineStatus)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
