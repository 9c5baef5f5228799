"""What verbs print with --json: one Struct for each kind of line.

Lines that the server sends too are in `core.shapes`, a line of `board` is a `Team`, and `topic` prints its domain's own
dataclasses. `print_json` prints all of them.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType


class CountLine(Struct, frozen=True):
    """`count`: the number of live keys at a position."""

    count: int
    position: str


class LoadLine(Struct, frozen=True):
    """`load`: how many records were acknowledged, and in what time."""

    acknowledged: int
    seconds: float


class BrokerStartLine(Struct, frozen=True, kw_only=True):
    """`broker start`. `recovered`: the brokers that had crashed; `cut_off`: the partitions that Kafka shortened."""

    bootstrap_servers: str
    started: tuple[int, ...]
    recovered: tuple[int, ...]
    cut_off: tuple[str, ...]
    config: str | None  # the client settings of the administrator, on a cluster with passwords


class BrokerLine(Struct, frozen=True):
    """`broker status`: one broker. The pid is null while the broker does not run."""

    broker: int
    port: int
    pid: int | None
    log: str


class UserFileLine(Struct, frozen=True):
    """`broker user add`: the account, and the file with its client settings."""

    user: str
    file: str


class UserLine(Struct, frozen=True):
    """`broker user list`: the rights of one account."""

    user: str
    read: tuple[str, ...]
    write: tuple[str, ...]
    groups: tuple[str, ...]


class LastExit(Struct, frozen=True):
    """The last end of a part. `said` is the last line of its error output, `told` a sentence with all of this."""

    at: int  # in ms
    code: int | None
    said: str
    told: str


class PartLine(Struct, frozen=True, kw_only=True):
    """`status`: a broker or a part of `up`. The times are in ms."""

    part: str
    id: int | None = None
    state: str
    address: str | None = None
    pid: int | None
    since: int | None
    restarts: int
    last_exit: LastExit | None
    log: str


class MistakeLine(Struct, frozen=True):
    """One mistake of a pipeline file. `is_unreachable`: the cluster did not answer, so its topics are not checked."""

    line: int
    text: str
    is_unreachable: bool


class CheckLine(Struct, frozen=True):
    """`run --check`: the size of a pipeline file, and its mistakes."""

    file: str
    rules: int
    tables: int
    mistakes: list[MistakeLine]


class DifferingRow(Struct, frozen=True):
    """The row of one server. The value is text, cut to where the two rows differ."""

    partition: int
    offset: int
    timestamp: int
    value: str
    headers: list[Any] | UnsetType = UNSET


class DifferenceLine(Struct, frozen=True):
    key: str
    first: DifferingRow | None
    second: DifferingRow | None


class CompareLine(Struct, frozen=True, kw_only=True):
    """`compare`: one table. `missing_at` comes alone, for a table that only one server has, or neither."""

    table: str
    equal: bool
    missing_at: list[str] | UnsetType = UNSET
    # Both are missing when the servers have two topics under the name of the table.
    position: str | UnsetType = UNSET
    log_starts: list[str] | UnsetType = UNSET
    # The ids of those two topics.
    topics: list[str] | UnsetType = UNSET
    rows: int | UnsetType = UNSET
    explained: int | UnsetType = UNSET
    left: int | UnsetType = UNSET
    different: int | UnsetType = UNSET
    differences: list[DifferenceLine] | UnsetType = UNSET
