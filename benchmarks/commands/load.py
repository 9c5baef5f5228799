"""`lastword load` of JSON lines against a bare produce loop of the same keys and values."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.input.rows import write_rows
from benchmarks.input.topics import PARTITIONS, fresh_topic
from benchmarks.measuring.commands import alternative, lastword
from benchmarks.measuring.figures import Figure, Ratio, Result, stricter
from benchmarks.measuring.plan import Plan
from benchmarks.measuring.rounds import Run, interleaved, run
from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection

_HOW = """\
`lastword load` reads {records:,} JSON lines of about 190 bytes from a file and checks and writes each one. The
alternative, [bare_produce.py](../benchmarks/alternatives/bare_produce.py), has the same keys and values in memory as
bytes and hands them to librdkafka, with the same client settings: idempotent, acks from all replicas, lz4. Each run
writes to a new compacted topic with {partitions} partitions. "Whole process" is from the start of the process to its
end. "Sending" is measured by each process: from the first line read (lastword) or the first record handed over (bare
loop) to the last acknowledgement. The lower of the two ratios must meet the target."""


def bench_load(plan: Plan) -> Result:
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder, plan.cluster() as connection:
        home = Path(folder)
        lines, pairs = home / "rows.jsonl", home / "rows.tsv"
        plan.report(f"load: writing a file of {plan.records:,} rows")
        write_rows(lines, pairs, plan.records)
        servers = connection.bootstrap_servers

        def by_lastword(topic: str) -> list[str]:
            return lastword("load", topic, str(lines), "--json", "--bootstrap-servers", servers)

        def by_bare_loop(topic: str) -> list[str]:
            return alternative("bare_produce", servers, topic, str(pairs))

        runs = interleaved(
            plan,
            "load",
            {
                "lastword": lambda: _written(by_lastword, connection, home, plan.records),
                "bare loop": lambda: _written(by_bare_loop, connection, home, plan.records),
            },
        )
    return _result(plan, runs["lastword"], runs["bare loop"])


def _written(command: Callable[[str], list[str]], connection: Connection, home: Path, records: int) -> Run:
    with fresh_topic(connection, f"bench-load-{uuid.uuid4().hex[:8]}") as topic:
        done = run(command(topic), home)
    if done.answer["acknowledged"] != records:
        raise LastwordError(f"benchmark: {done.answer['acknowledged']} of {records} records were acknowledged")
    return done


def _result(plan: Plan, ours: list[Run], theirs: list[Run]) -> Result:
    def rates(what: str, seconds: list[float]) -> Figure:
        return Figure(what=what, unit="records/s", rounds=tuple(plan.records / each for each in seconds))

    our_whole = rates("lastword load, whole process", [each.seconds for each in ours])
    their_whole = rates("bare produce loop, whole process", [each.seconds for each in theirs])
    our_sending = rates("lastword load, sending", [each.answer["seconds"] for each in ours])
    their_sending = rates("bare produce loop, sending", [each.answer["seconds"] for each in theirs])
    whole = Ratio(what="whole process", ours=our_whole, theirs=their_whole)
    sending = Ratio(what="sending", ours=our_sending, theirs=their_sending)
    strictest = stricter(whole, sending)
    ratios = [replace(ratio, target=0.6) if ratio is strictest else ratio for ratio in (whole, sending)]
    return Result(
        name="load",
        title="Load: JSON lines into a table",
        how=_HOW.format(records=plan.records, partitions=PARTITIONS),
        options=plan.options,
        figures=(our_whole, their_whole, our_sending, their_sending),
        ratios=tuple(sorted(ratios, key=lambda ratio: ratio.target is None)),
    )
