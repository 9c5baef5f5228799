"""What the owner of a build hears from its workers."""

from __future__ import annotations

import io

from lastword.replica.building.tasks import Passed
from lastword.replica.building.worker_pool import whole_messages


def test_a_message_that_a_killed_worker_began_is_no_message_and_no_error() -> None:
    """An error would end the thread that listens, and the owner would wait for ever."""
    whole = b'{"type":"Passed","offsets":1,"rows":1}\n'
    for at in range(len(whole)):
        assert list(whole_messages(io.BytesIO(whole + whole[:at]))) == [Passed(1, 1)]
