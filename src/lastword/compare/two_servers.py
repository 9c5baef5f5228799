"""Whether two servers serve the same rows: the tables that both have, checked and compared one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lastword.compare.key_order_merge import Comparison, Merge
from lastword.compare.remote_table import ServedSide, tables_of
from lastword.core.codecs import Codec, codec_named
from lastword.core.errors import BadInput
from lastword.core.http_client import Address, Server
from lastword.core.nearest import did_you_mean
from lastword.core.shapes.tables import TableStatus

# (table, rows compared so far, rows in all as far as is known)
OnProgress = Callable[[str, int, int], None]
# In these states the rows of a table are right for its position. While the table catches up, rows may be missing whose
# records were compacted away.
_COMPARABLE = ("ready", "connecting")


@dataclass(frozen=True, kw_only=True)
class ComparisonOutcome:
    """How two sides of a table compare: `comparison` is None where only one server has the table, or neither."""

    table: str
    key_codec: Codec
    comparison: Comparison | None = None
    # The ids of the two topics, if the servers have different ones.
    topics: tuple[str, str] | None = None
    # For the person: states of the servers that explain a difference.
    notes: tuple[str, ...] = ()
    missing_at: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        return self.comparison is not None and self.comparison.different == 0


def compared(
    first: Address, second: Address, *, token: str | None, on_progress: OnProgress
) -> Iterator[ComparisonOutcome]:
    """The tables that the addresses name, one after the other; all of both servers where neither names one."""
    if first.table and second.table and first.table != second.table:
        raise BadInput(f"{first.table} and {second.table} are two tables: give one, or serve both under one name")
    servers = (Server(first, token=token), Server(second, token=token))
    try:
        served = (tables_of(servers[0]), tables_of(servers[1]))
        wanted = first.table or second.table
        if wanted is not None and not any(wanted in tables for tables in served):
            known = served[0].keys() | served[1].keys()
            advice = did_you_mean(wanted, known) or f"they serve {', '.join(sorted(known)) or 'none'}"
            raise BadInput(f"neither server has a table {wanted!r}: {advice}")
        names = [wanted] if wanted is not None else sorted(served[0].keys() | served[1].keys())
        # All tables first: an error comes before hours of work.
        for name in names:
            _check(name, servers, served)
        for name in names:
            yield _outcome(name, servers, served, on_progress)
    finally:
        for server in servers:
            server.close()


Served = tuple[dict[str, TableStatus], dict[str, TableStatus]]
Servers = tuple[Server, Server]


def _check(name: str, servers: Servers, served: Served) -> None:
    one, two = (tables.get(name) for tables in served)
    for server, status in zip(servers, (one, two), strict=True):
        if status is not None:
            _check_state(server, status)
    if one is not None and two is not None and (one.key, one.value) != (two.key, two.value):
        raise BadInput(
            f"{name} has the codecs key={one.key},value={one.value} at {servers[0].url} and key={two.key},"
            f"value={two.value} at {servers[1].url}: serve it with the same ones"
        )


def _check_state(server: Server, status: TableStatus) -> None:
    if status.state == "failed":
        raise BadInput(f"{status.name} at {server.url} has failed: the output of that server says what to do")
    if status.state not in _COMPARABLE or status.rows is None:
        raise BadInput(
            f"{status.name} at {server.url} is not ready, it is {status.state}: "
            f"compare again when {server.url}/ready says so"
        )


def _outcome(name: str, servers: Servers, served: Served, on_progress: OnProgress) -> ComparisonOutcome:
    one, two = (tables.get(name) for tables in served)
    if one is None or two is None:
        missing = tuple(s.url for s, status in zip(servers, (one, two), strict=True) if status is None)
        known = one or two
        assert known is not None  # noqa: S101  the name is one of theirs
        return ComparisonOutcome(table=name, key_codec=codec_named(known.key), missing_at=missing)
    sides = (ServedSide(servers[0], one), ServedSide(servers[1], two))
    total = max(one.rows or 0, two.rows or 0)
    merge = Merge(*sides, one_log=one.topic_id == two.topic_id, on_progress=lambda done: on_progress(name, done, total))
    comparison = merge.compare()
    now = (sides[0].status(), sides[1].status())
    for server, before, after in zip(servers, (one, two), now, strict=True):
        if comparison.different:
            _check_state(server, after)
        if before.topic_id != after.topic_id:
            raise BadInput(f"the topic of {name} at {server.url} was recreated meanwhile: compare again")
    topics = None if one.topic_id == two.topic_id else (one.topic_id or "?", two.topic_id or "?")
    return ComparisonOutcome(
        table=name,
        key_codec=codec_named(one.key),
        comparison=comparison,
        topics=topics,
        notes=tuple(_notes(sides, now)),
    )


def _notes(sides: tuple[ServedSide, ServedSide], now: tuple[TableStatus, TableStatus]) -> Iterator[str]:
    for side, status in zip(sides, now, strict=True):
        if side.behind:
            goal = ",".join(f"{partition}:{offset}" for partition, offset in sorted(side.behind.items()))
            yield f"{side.url} is behind: {side.name} did not reach {goal} in time"
        if status.state != "ready":
            yield f"{side.url} does not follow the topic now: {side.name} is {status.state}"
        if status.deletes == "uncertain":
            yield f"{side.url} may show deleted rows: its deletes are uncertain"
