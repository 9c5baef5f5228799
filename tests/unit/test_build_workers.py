"""How many workers a build has, and what their owner hears from them."""

from __future__ import annotations

import io
from pathlib import Path

from lastword.core.record import Record
from lastword.replica.building.key_ranges import KeyRange
from lastword.replica.building.merge import merged
from lastword.replica.building.rebuild import BuildProgress, dealt, workers_for
from lastword.replica.building.sorted_runs import RunsWriter
from lastword.replica.building.tasks import MergeTask, Passed, PassedRows, RowFile
from lastword.replica.building.worker_pool import whole_messages
from lastword.replica.store.row_layout import pack_row


def test_a_message_that_a_killed_worker_began_is_no_message_and_no_error() -> None:
    """An error would end the thread that listens, and the owner would wait for ever."""
    whole = b'{"type":"Passed","offsets":1,"rows":1}\n'
    for at in range(len(whole)):
        assert list(whole_messages(io.BytesIO(whole + whole[:at]))) == [Passed(1, 1)]


def test_there_are_as_many_workers_as_cpus_and_partitions_where_the_memory_is_enough_for_them() -> None:
    assert workers_for(12, 1024, 2) == (2, 2)
    assert workers_for(1, 1024, 2) == (1, 2)
    assert workers_for(100, 1024, 64) == (16, 16)
    assert workers_for(100, 128, 64) == (2, 2)
    assert workers_for(1, 1024, 64) == (1, 4)
    assert workers_for(100, 8192, 64) == (64, 64)
    assert workers_for(0, 1024, 2) == (0, 0)


def test_a_merge_tells_how_many_rows_it_has_read(tmp_path: Path) -> None:
    runs = RunsWriter(tmp_path / "runs")
    runs.add({b"%d" % number: pack_row(Record(b"", b"1", 0, number, 7), poison=False) for number in range(9)})
    runs.close()
    told = list[int]()
    ranges = [KeyRange(b"", b"3"), KeyRange(b"3", b"4"), KeyRange(b"4", None)]
    row_files = [RowFile(file=str(tmp_path / "rows"), ranges=ranges)]
    merged(MergeTask(runs_files=[str(tmp_path / "runs")], row_files=row_files, value_codec="json"), told.append)
    assert told == [3, 4, 9]


def test_progress_never_goes_back_and_ends_at_the_number_of_offsets() -> None:
    told = list[tuple[int, int]]()
    progress = BuildProgress(100, lambda *counts: told.append(counts))
    # First records that replace others, and then new keys; by two workers.
    for read, rows in ((0, 0), (20, 1), (30, 11), (50, 31)):
        progress.note_read(0, Passed(read, rows))
        progress.note_read(1, Passed(read, rows))
    assert told[-1] == (61, 100)
    for merged_rows in (0, 10, 31):
        progress.note_merged(0, PassedRows(merged_rows))
        progress.note_merged(1, PassedRows(merged_rows))
    assert told[-1] == (100, 100)
    progress.done()
    assert told == sorted(told)


def test_every_file_of_rows_is_dealt_to_one_worker() -> None:
    files = [RowFile(file=str(number), ranges=[]) for number in range(7)]
    for workers in (1, 2, 3, 7, 9):
        shares = dealt(files, workers)
        assert sorted((each for share in shares for each in share), key=lambda each: each.file) == files
        assert sorted(map(len, shares))[-1] - sorted(map(len, shares))[0] <= 1
        assert len(shares) == min(workers, 7)
