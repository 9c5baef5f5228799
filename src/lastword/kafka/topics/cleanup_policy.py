"""The `cleanup.policy` of a topic: whether Kafka compacts the topic, and whether its records expire.

The only place that reads the text of the setting: every other file asks a CleanupPolicy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lastword.kafka.client.live_settings import SettingNow

CLEANUP_POLICY = "cleanup.policy"


@dataclass(frozen=True)
class CleanupPolicy:
    """What Kafka does with old records. Since Kafka 4 the setting may be empty: then every record stays."""

    # As Kafka shows the setting: `compact`, `delete`, `compact,delete` or nothing.
    text: str

    @property
    def compacts(self) -> bool:
        """Whether the cleaner removes records that a later record of their key made obsolete."""
        return "compact" in self._words

    @property
    def deletes(self) -> bool:
        """Whether records expire, by age or size, the newest of a key too."""
        return "delete" in self._words

    @property
    def keeps_every_row(self) -> bool:
        """Whether the topic is compacted and the newest record of a key never expires, as a table needs."""
        return self.compacts and not self.deletes

    @property
    def _words(self) -> frozenset[str]:
        return frozenset(word.strip() for word in self.text.split(","))


def cleanup_policy(settings: Mapping[str, SettingNow]) -> CleanupPolicy:
    """The policy in force, of a topic's settings as the cluster shows them."""
    return CleanupPolicy(settings[CLEANUP_POLICY].value)
