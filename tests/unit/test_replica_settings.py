from __future__ import annotations

from typing import Any

import pytest

from lastword.core.errors import BadInput
from lastword.replica.settings import ReplicaSettings


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"memory_mb": 1}, "memory_mb=1: give a number from 128 on"),
        ({"memory_mb": "lots"}, "memory_mb='lots': give a number from 128 on"),
        ({"watch_capacity": 0}, "watch_capacity=0: give a number from 1 on"),
        ({"check_every_s": 0}, "check_every_s=0: give a number from 0.1 on"),
        ({"last_good_mb": -1}, "last_good_mb=-1: give a number from 0 on"),
        ({"on_lost_records": "ignore"}, "on_lost_records='ignore': say 'rebuild' or 'fail'"),
    ],
)
def test_a_setting_out_of_its_range_is_refused_with_the_range(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput) as refusal:
        ReplicaSettings(**given)
    assert str(refusal.value) == reason
