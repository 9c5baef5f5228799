"""The tables that a pipeline keeps: a row for each rule, with sums over all source partitions.

The numbers are absolute, so writing a row twice changes nothing. A takeover stops an older writer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.pipeline.plan.plan import KeptTable, Pipeline
from lastword.pipeline.running.progress import PartitionProgress, position_of

POSITION_HEADER = "position"


class KeptTables:
    def __init__(self, transactions: Transactions, plan: Pipeline) -> None:
        self._plan = plan
        self._transactions = transactions
        self._written: dict[tuple[str, str], bytes] = {}

    def write(self, progress: Mapping[int, PartitionProgress]) -> None:
        """Writes the rows that differ from those written last; the first time all rows."""
        changed = {place: value for place, value in self._rows(progress).items() if self._written.get(place) != value}
        if not changed:
            return
        headers = [(POSITION_HEADER, f"{self._plan.source.topic} {position_of(progress)}".encode())]
        *records, last = [
            OutgoingRecord(topic, value, rule.encode(), headers) for (topic, rule), value in changed.items()
        ]
        self._transactions.write(records, last)
        self._written.update(changed)

    def _rows(self, progress: Mapping[int, PartitionProgress]) -> dict[tuple[str, str], bytes]:
        return {
            (table.topic, rule.name): json.dumps({table.key: rule.name, **sums(table, rule.name, progress)}).encode()
            for table in self._plan.tables
            for rule in self._plan.rules
        }


def sums(table: KeptTable, rule: str, progress: Mapping[int, PartitionProgress]) -> dict[str, int]:
    """A rule's counters in a table, over all partitions."""
    of_partitions = [each.counters.get(table.topic, {}).get(rule, {}) for each in progress.values()]
    return {name: sum(counters.get(name, 0) for counters in of_partitions) for name in table.counters}
