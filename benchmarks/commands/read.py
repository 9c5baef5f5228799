"""`lastword dump` of a table against a bare consume loop that throws every record away."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

from benchmarks.input.rows import write_rows
from benchmarks.input.topics import PARTITIONS, fresh_topic
from benchmarks.measuring.commands import alternative, lastword
from benchmarks.measuring.figures import Figure, Ratio, Result
from benchmarks.measuring.plan import Plan
from benchmarks.measuring.rounds import Run, interleaved, run
from lastword.core.errors import LastwordError

_HOW = """\
`lastword dump` reads a topic of {records:,} records (distinct keys, about 190 bytes a row, {partitions} partitions,
lz4), folds them, checks that every value is JSON and writes the rows as JSON lines to a file. The alternative,
[bare_consume.py](../benchmarks/alternatives/bare_consume.py), takes the same records from librdkafka with the same
client settings (committed data only, same fetch and queue sizes) and throws them away unread. "Whole process" is from
the start of the process to its end. "Consuming" is measured by the bare loop, without its start."""


def bench_read(plan: Plan) -> Result:
    with (
        tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder,
        plan.cluster() as connection,
        fresh_topic(connection, f"bench-read-{uuid.uuid4().hex[:8]}") as topic,
    ):
        home, servers = Path(folder), connection.bootstrap_servers
        lines, pairs, dumped = home / "rows.jsonl", home / "rows.tsv", home / "dumped.jsonl"
        plan.report(f"read: filling a topic with {plan.records:,} records")
        write_rows(lines, pairs, plan.records)
        run(alternative("bare_produce", servers, topic, str(pairs)), home)

        def by_lastword() -> Run:
            done = run(lastword("dump", topic, "--bootstrap-servers", servers), home, output=dumped)
            if dumped.stat().st_size != lines.stat().st_size:
                raise LastwordError("benchmark: the dump differs from the table that was written")
            return done

        def by_bare_loop() -> Run:
            return run(alternative("bare_consume", servers, topic, str(plan.records)), home)

        runs = interleaved(plan, "read", {"lastword": by_lastword, "bare loop": by_bare_loop})
    return _result(plan, runs["lastword"], runs["bare loop"])


def _result(plan: Plan, ours: list[Run], theirs: list[Run]) -> Result:
    def rates(what: str, seconds: list[float]) -> Figure:
        return Figure(what=what, unit="records/s", rounds=tuple(plan.records / each for each in seconds))

    our_whole = rates("lastword dump, whole process", [each.seconds for each in ours])
    their_whole = rates("bare consume loop, whole process", [each.seconds for each in theirs])
    their_consuming = rates("bare consume loop, consuming", [each.answer["seconds"] for each in theirs])
    return Result(
        name="read",
        title="Read: a table as JSON lines",
        how=_HOW.format(records=plan.records, partitions=PARTITIONS),
        options=plan.options,
        figures=(our_whole, their_whole, their_consuming),
        ratios=(Ratio(what="whole process", ours=our_whole, theirs=their_whole, target=0.4),),
    )
