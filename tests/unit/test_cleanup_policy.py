"""cleanup.policy: what each text that Kafka shows means."""

from __future__ import annotations

import pytest

from lastword.kafka.client.live_settings import SettingNow
from lastword.kafka.topics.cleanup_policy import CleanupPolicy, cleanup_policy


@pytest.mark.parametrize(
    ("text", "compacts", "deletes", "keeps_every_row"),
    [
        ("compact", True, False, True),
        ("delete", False, True, False),
        ("compact,delete", True, True, False),
        ("delete,compact", True, True, False),
        ("delete, compact", True, True, False),
        ("", False, False, False),
    ],
)
def test_what_a_policy_does(text: str, compacts: bool, deletes: bool, keeps_every_row: bool) -> None:
    policy = CleanupPolicy(text)
    assert (policy.compacts, policy.deletes, policy.keeps_every_row) == (compacts, deletes, keeps_every_row)


def test_the_policy_in_force_counts_wherever_it_was_set() -> None:
    settings = {"cleanup.policy": SettingNow(value="compact", comes_from="broker")}
    assert cleanup_policy(settings) == CleanupPolicy("compact")
