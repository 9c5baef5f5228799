"""What the owner of a build hears from its workers."""

from __future__ import annotations

import io

from lastword.replica.building.rebuild import workers_for
from lastword.replica.building.tasks import Passed
from lastword.replica.building.worker_pool import whole_messages


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
