"""How long a user waits: for the command line, against bare Python, and for a broker to be ready."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring.commands import lastword
from benchmarks.measuring.figures import Figure, Ratio, Result
from benchmarks.measuring.plan import Plan
from benchmarks.measuring.rounds import Run, interleaved, run
from lastword.kafka.broker.local_cluster import LocalCluster

# A start of Python takes milliseconds: its median needs more rounds.
_HELP_ROUNDS_EACH = 4

_HOW = """\
`lastword --help` against `python -c pass` of the same interpreter, {help_rounds} rounds each. A broker is ready when it
answers metadata requests and is registered. Cold: a new cluster, whose folder is formatted before the first start.
Warm: the second start of the same cluster. The jars are fetched before; each start checks their sha256."""


def bench_start(plan: Plan) -> Result:
    help_plan = replace(plan, rounds=plan.rounds * _HELP_ROUNDS_EACH)
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder:
        home = Path(folder)
        started = interleaved(
            help_plan,
            "start",
            {
                "lastword --help": lambda: run(lastword("--help"), home),
                "python -c pass": lambda: run([sys.executable, "-c", "pass"], home),
            },
        )
    seconds: list[tuple[float, float]] = []
    for number in range(plan.rounds + 1):
        plan.report(f"start: broker, {f'round {number} of {plan.rounds}' if number else 'warming up'}")
        seconds.append(_cold_and_warm(plan))
    ours, theirs = (_milliseconds(what, runs) for what, runs in started.items())
    cold, warm = zip(*seconds[1:], strict=True)
    return Result(
        name="start",
        title="Start: the command line and the broker",
        how=_HOW.format(help_rounds=help_plan.rounds),
        options=f"--rounds {plan.rounds}",
        figures=(
            ours,
            theirs,
            Figure(what="broker ready, cold", unit="s", rounds=cold),
            Figure(what="broker ready, warm", unit="s", rounds=warm),
        ),
        ratios=(Ratio(what="lastword --help", ours=ours, theirs=theirs, target=5, bound="at most"),),
    )


def _cold_and_warm(plan: Plan) -> tuple[float, float]:
    """Seconds until a new cluster is ready, and until it is ready after a restart."""
    with tempfile.TemporaryDirectory(prefix="lastword-bench-") as folder:
        local = LocalCluster(name="bench", folder=Path(folder) / "cluster", jars=plan.jars, owned=True)
        with local:
            cold = local.start(port=0).seconds
            local.stop()
            return cold, local.start().seconds


def _milliseconds(what: str, runs: list[Run]) -> Figure:
    return Figure(what=what, unit="ms", rounds=tuple(each.seconds * 1000 for each in runs))
