"""What a task commits, and the ids that its worker keeps, on real Kafka and without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow
import pytest
from confluent_kafka import Producer
from msgspec import structs

from lastword.core.errors import Fenced, HistoryLost, LastwordError, SourceGap, TakenOver
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import read_log
from lastword.kafka.client.transactions import Transactions
from lastword.kafka.topics.topic_changes import create_topic, delete_topic
from lastword.pipeline.running.commit_task import CommitTask, TransactionLimits
from lastword.pipeline.running.progress import PartitionProgress, newest_progress, progress_record, transactional_id
from lastword.pipeline.running.source import Share, Shares
from support.compacted_logs import wait_for_markers
from support.evaluated_rows import OUTPUT_TOPICS, batch, end, valid

BEGINNING = PartitionProgress(next_offset=3, source_id="id", generation=1, owner="me")


@dataclass(frozen=True, kw_only=True)
class Taking(Connection):
    """The connection of the task. It notes the ids that are taken, each time."""

    ids: list[str] = field(default_factory=list)

    def producer(self, **settings: Any) -> Producer:
        self.ids.append(settings["transactional_id"])
        return super().producer(**settings)


@pytest.fixture
def taking(connection: Connection) -> Taking:
    return Taking(**vars(connection))


@pytest.fixture
def task(connection: Connection, taking: Taking, topic_name: str) -> Iterator[CommitTask]:
    """Both partitions of its source have a progress at offset 3, which the changelog has at offset 0."""
    names = {name: f"{topic_name}-{name}" for name in ("actions", "others", "app-rejects")}
    output_topics = replace(
        OUTPUT_TOPICS,
        rejects=names["app-rejects"],
        rules=tuple((name, names[topic]) for name, topic in OUTPUT_TOPICS.rules),
        limits={names[topic]: limit for topic, limit in OUTPUT_TOPICS.limits.items()},
    )
    changelog = f"{topic_name}-progress-changelog"
    for name in names.values():
        create_topic(connection, name, partitions=1, settings={"cleanup.policy": "delete"})
    create_topic(connection, changelog, partitions=2)
    for partition in range(2):
        holder = Transactions(connection, transactional_id(topic_name, partition))
        assert holder.write([], progress_record(changelog, partition, BEGINNING)) == 0
        holder.close()
    yield CommitTask(
        connection=taking,
        app=topic_name,
        changelog=changelog,
        output_topics=output_topics,
        generation=1,
        owner="me",
    )
    for name in (*names.values(), changelog):
        delete_topic(connection, name)


def run(
    task: CommitTask, shares: list[Share], *batches: pyarrow.RecordBatch, is_only_task: bool = True
) -> dict[int, dict[str, Any]]:
    """What it reports, by partition, when it gets these rows and then the ends of the shares."""
    ends = batch(*(end(share.end, share.partition) for share in shares))
    reports = task.results(Shares(shares, is_only_task=is_only_task), iter([*batches, ends]))
    rows = [row for report in reports for row in report.to_pylist()]
    return {row["partition"]: {**row, "progress": json.loads(row["progress"])} for row in rows}


def emitted(task: CommitTask) -> list[tuple[bytes | None, bytes | None]]:
    topic = task.output_topics.rules[0][1]
    wait_for_markers(task.connection, topic)
    records = [record for part in read_log(task.connection, topic) for record in part]
    return [(record.value, dict(record.headers)["source"]) for record in records]


def test_the_next_task_in_a_worker_goes_on_without_taking_the_id_again(task: CommitTask, taking: Taking) -> None:
    first = run(task, [Share(1, 3, 5, 0)], batch(valid(3, (0, b"a")), valid(4)))[1]
    second = run(task, [Share(1, 5, 7, first["offset"])], batch(valid(5), valid(6, (0, b"b"))))[1]

    assert taking.ids == [f"{task.app}-1"]
    assert emitted(task) == [(b"a", b"users/1/3"), (b"b", b"users/1/6")]
    assert second["progress"]["next_offset"] == 7
    assert second["progress"]["counters"]["stats"]["one"] == {"seen": 4, "flagged": 2}


def test_a_worker_whose_id_was_taken_commits_nothing_and_then_begins_where_the_others_commit_ends(
    connection: Connection, task: CommitTask, taking: Taking
) -> None:
    first = run(task, [Share(1, 3, 4, 0)], batch(valid(3, (0, b"a"))))[1]
    other = Transactions(connection, transactional_id(task.app, 1))
    other.write([], progress_record(task.changelog, 1, structs.replace(BEGINNING, next_offset=5)))
    other.close()
    next_share, rows = Share(1, 4, 6, first["offset"]), batch(valid(4, (0, b"b")), valid(5, (0, b"c")))

    with pytest.raises(Fenced):
        run(task, [next_share], rows)
    assert emitted(task) == [(b"a", b"users/1/3")]
    run(task, [next_share], rows)

    assert emitted(task) == [(b"a", b"users/1/3"), (b"c", b"users/1/5")]
    assert len(taking.ids) == 2


def test_a_second_attempt_reads_what_the_first_has_committed_and_writes_nothing_twice(
    task: CommitTask, taking: Taking
) -> None:
    share, rows = Share(1, 3, 5, 0), batch(valid(3, (0, b"a")), valid(4, (0, b"b")))
    first = run(task, [share], rows)[1]
    second = run(task, [share], rows)[1]

    assert len(emitted(task)) == 2
    assert (second["progress"], second["offset"]) == (first["progress"], first["offset"])
    assert (first["records"], second["records"]) == (2, 0)
    assert len(taking.ids) == 2


def test_partitions_of_one_task_are_told_apart_and_ends_of_transactions_are_passed(task: CommitTask) -> None:
    mixed = batch(valid(3, (0, b"a")), {**valid(3, (0, b"b")), "partition": 0}, valid(4), valid(6, (0, b"c")))
    reports = run(task, [Share(0, 3, 5, 0), Share(1, 3, 9, 0)], mixed)

    assert {partition: row["progress"]["next_offset"] for partition, row in reports.items()} == {0: 5, 1: 9}
    assert {partition: row["records"] for partition, row in reports.items()} == {0: 1, 1: 3}
    assert sorted(emitted(task)) == [(b"a", b"users/1/3"), (b"b", b"users/0/3"), (b"c", b"users/1/6")]


def test_a_share_without_records_moves_the_progress_to_its_end(task: CommitTask) -> None:
    assert run(task, [Share(1, 3, 8, 0)])[1]["progress"]["next_offset"] == 8


def test_an_end_in_the_batch_of_the_last_records_is_no_record(task: CommitTask) -> None:
    reports = task.results(Shares([Share(1, 3, 8, 0)], is_only_task=True), iter([batch(valid(3, (0, b"a")), end(8))]))

    assert [json.loads(row["progress"])["next_offset"] for report in reports for row in report.to_pylist()] == [8]
    assert emitted(task) == [(b"a", b"users/1/3")]


def test_a_reader_that_breaks_off_moves_no_progress_past_what_it_gave(task: CommitTask) -> None:
    # For Arrow a stream that breaks off has ended: no error tells it.
    cut = [batch(valid(3, (0, b"a"))), batch({**end(9), "partition": 0})]
    shares = Shares([Share(1, 3, 9, 0), Share(0, 3, 9, 0)], is_only_task=True)

    with pytest.raises(LastwordError, match=r"users\[1\]: the reader stopped before offset 9"):
        list(task.results(shares, iter(cut)))
    assert emitted(task) == []
    done = run(task, [Share(1, 3, 9, 0)], batch(valid(3, (0, b"a")), valid(5, (0, b"b"))))[1]

    assert emitted(task) == [(b"a", b"users/1/3"), (b"b", b"users/1/5")]
    assert done["progress"]["next_offset"] == 9


def test_a_task_of_an_earlier_start_of_the_same_driver_does_not_take_the_id(
    connection: Connection, task: CommitTask, taking: Taking
) -> None:
    other = Transactions(connection, transactional_id(task.app, 1))
    other.write([], progress_record(task.changelog, 1, structs.replace(BEGINNING, generation=2)))
    other.close()

    with pytest.raises(TakenOver):
        run(task, [Share(1, 3, 4, 0)], batch(valid(3, (0, b"a"))))

    assert taking.ids == []


def test_a_worker_that_keeps_its_id_sees_that_the_changelog_was_made_again(
    connection: Connection, task: CommitTask
) -> None:
    first = run(task, [Share(1, 3, 4, 0)], batch(valid(3, (0, b"a"))))[1]
    delete_topic(connection, task.changelog)
    create_topic(connection, task.changelog, partitions=2)

    with pytest.raises(SourceGap, match="was deleted or emptied while the pipeline wrote to it"):
        run(task, [Share(1, 4, 5, first["offset"])], batch(valid(4, (0, b"b"))))


def test_partitions_of_a_task_share_what_may_be_held(task: CommitTask) -> None:
    task = replace(task, limits=TransactionLimits(bytes=1000))
    small, large = {**valid(3, (0, b"a" * 300)), "partition": 0}, valid(3, (0, b"b" * 900))

    def broken() -> Iterator[pyarrow.RecordBatch]:
        yield batch(small, large)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        list(task.results(Shares([Share(0, 3, 4, 0), Share(1, 3, 4, 0)], is_only_task=True), broken()))

    assert emitted(task) == [(b"b" * 900, b"users/1/3")]


def test_a_share_that_begins_after_the_progress_is_refused(task: CommitTask) -> None:
    with pytest.raises(HistoryLost, match=r"from offset 4, but its progress is 3"):
        run(task, [Share(1, 4, 6, 0)], batch(valid(4, (0, b"a"))))

    assert emitted(task) == []


def test_one_of_several_tasks_keeps_no_id(task: CommitTask, taking: Taking) -> None:
    first = run(task, [Share(1, 3, 4, 0)], batch(valid(3, (0, b"a"))), is_only_task=False)[1]
    run(task, [Share(1, 4, 5, first["offset"])], batch(valid(4, (0, b"b"))))

    assert len(taking.ids) == 2
    assert len(emitted(task)) == 2


def test_how_many_tasks_ever_shared_the_work_is_committed_with_it(task: CommitTask) -> None:
    shared = Shares([Share(1, 3, 4, 0)], is_only_task=False, busy_tasks=3)
    rows = iter([batch(valid(3, (0, b"a"))), batch(end(4, 1))])
    (report,) = [row for each in task.results(shared, rows) for row in each.to_pylist()]
    later = run(task, [Share(1, 4, 5, report["offset"])], batch(valid(4, (0, b"b"))))[1]

    assert (json.loads(report["progress"])["most_tasks"], later["progress"]["most_tasks"]) == (3, 3)
    stored = newest_progress(task.connection, task.changelog, 1)
    assert stored is not None
    assert stored.progress.most_tasks == 3


def test_a_task_of_another_start_of_the_driver_takes_the_ids_anew(task: CommitTask, taking: Taking) -> None:
    first = run(task, [Share(1, 3, 4, 0)], batch(valid(3, (0, b"a"))))[1]
    run(replace(task, generation=2), [Share(1, 4, 5, first["offset"])], batch(valid(4, (0, b"b"))))

    assert len(taking.ids) == 2


def test_a_large_share_is_committed_in_parts_and_a_second_attempt_writes_the_rest(task: CommitTask) -> None:
    task = replace(task, limits=TransactionLimits(records=2))
    batches = [batch(valid(3, (0, b"a")), valid(4, (0, b"b"))), batch(valid(5, (0, b"c"))), batch(valid(6, (0, b"d")))]

    def broken() -> Iterator[pyarrow.RecordBatch]:
        yield batches[0]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        list(task.results(Shares([Share(1, 3, 7, 0)], is_only_task=True), broken()))
    assert [value for value, _ in emitted(task)] == [b"a", b"b"]
    done = run(task, [Share(1, 3, 7, 0)], *batches)[1]

    assert [value for value, _ in emitted(task)] == [b"a", b"b", b"c", b"d"]
    assert (done["records"], done["progress"]["next_offset"]) == (2, 7)
    assert done["progress"]["counters"]["stats"]["one"] == {"seen": 4, "flagged": 4}
