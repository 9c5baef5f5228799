"""The search for a record that fails every task, without Spark: a batch fails when it has that record."""

from __future__ import annotations

from py4j.protocol import Py4JError

from lastword.pipeline.running.isolation import Isolation, blame_of
from lastword.pipeline.running.source import Share

ENDED = "Job aborted due to stage failure: Lost task 0.1 in stage 3.0 (TID 5) (localhost executor driver): "


def shares(reached: dict[int, int], ends: dict[int, int]) -> dict[int, Share]:
    return {
        partition: Share(partition=partition, begin=reached[partition], end=end, known=0)
        for partition, end in ends.items()
        if reached[partition] < end
    }


def searched(poison: set[tuple[int, int]], ends: dict[int, int]) -> tuple[list[tuple[int, int]], int]:
    """Which records are rejected, in which order, and how many batches have failed until all is read."""
    isolation, reached, rejected, failures = Isolation(), dict.fromkeys(ends, 0), [], 0
    while left := shares(reached, ends):
        batch = [*isolation.bounded(left).values()]
        if any((each.partition, offset) in poison for each in batch for offset in range(each.begin, each.end)):
            failures += 1
            alone = isolation.narrow(batch)
            if alone is None:
                continue
            rejected.append((alone.partition, alone.begin))
        else:
            isolation.widen(batch)
        reached.update({each.partition: each.end for each in batch})
    return rejected, failures


def test_every_such_record_is_found_and_no_other() -> None:
    poison = {(0, 0), (0, 77), (0, 78), (1, 99_999), (2, 5)}

    rejected, failures = searched(poison, {0: 1000, 1: 100_000, 2: 6})

    assert (sorted(rejected), len(rejected)) == (sorted(poison), 5)
    assert failures < 5 * 10


def test_without_such_a_record_batches_are_as_large_as_they_can_be() -> None:
    assert searched(set(), {0: 1000, 1: 100_000}) == ([], 0)


def test_when_every_record_is_one_each_costs_about_one_failure() -> None:
    rejected, failures = searched({(0, offset) for offset in range(500)}, {0: 500})

    assert len(rejected) == 500
    assert failures < 510


def test_what_ends_a_task_is_to_blame_unless_it_is_of_the_machine_the_network_or_ours() -> None:
    blames = {
        "java.lang.StackOverflowError\n\tat a": "it ends a task of Spark's: java.lang.StackOverflowError",
        "java.lang.OutOfMemoryError: Java heap space": "it ends a task of Spark's: java.lang.OutOfMemoryError",
        "java.lang.AssertionError: assertion failed": "it ends a task of Spark's: java.lang.AssertionError",
        "org.apache.spark.api.python.PythonException: Traceback": None,
        "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory": None,
        "java.lang.NoClassDefFoundError: a/B": None,
        "java.io.IOException: No space left on device": None,
        "java.net.SocketException: Connection reset": None,
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)": None,
    }

    assert {text: blame_of(Py4JError(ENDED + text)) for text in blames} == blames
