"""Reports the status of a pipeline every two seconds: to its status topic, and by its consumer group."""

from __future__ import annotations

from collections.abc import Callable

from lastword.core.errors import LastwordError
from lastword.core.position import Position
from lastword.core.shapes.pipeline_status import PipelineStatus
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.groups import GroupPosition
from lastword.kafka.client.reading import log_bounds
from lastword.kafka.client.transactions import OutgoingRecord, Transactions
from lastword.pipeline.plan.plan import Pipeline
from lastword.pipeline.running.pipeline_status import RunStatus
from lastword.processes.background_loop import BackgroundLoop

_EVERY_S = 2.0


class Reporting:
    """A thread that reports inside the `with` block, and once more at its end.

    It writes under the transactional id of the driver, so an idle driver also notices a takeover.
    """

    def __init__(
        self,
        connection: Connection,
        plan: Pipeline,
        status: RunStatus,
        transactions: Transactions,
        *,
        on_report: Callable[[PipelineStatus], None],
        on_failure: Callable[[Exception], None],
        on_event: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._status = status
        self._transactions = transactions
        self._on_report = on_report
        self._on_failure = on_failure
        self._on_event = on_event
        self._group = GroupPosition(connection, plan.app)
        self._last_failure = ""
        self._loop = BackgroundLoop(f"{plan.app}-status", self._report_until_end)

    def __enter__(self) -> Reporting:
        self._loop.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.stop()

    def _report_until_end(self) -> None:
        while True:
            self._loop.rest(_EVERY_S)
            is_last = self._loop.is_stopping
            try:
                self._report()
            except Exception as failure:
                # After a failed transaction the producer may be unable to begin another: the driver starts over.
                self._on_failure(failure)
                return
            if is_last:
                return

    def _report(self) -> None:
        row = self._status.row(self._ends())
        self._on_report(row)
        record = OutgoingRecord(self._plan.status, row.to_json(), self._plan.app.encode())
        self._transactions.write([], record)
        if position := self._status.position:
            self._commit(position)

    def _commit(self, position: Position) -> None:
        try:
            self._group.commit({self._plan.source.topic: position})
        except LastwordError as failure:
            # The group only shows the lag to others, and the next commit comes in two seconds.
            if str(failure) != self._last_failure:
                self._on_event(str(failure))
            self._last_failure = str(failure)

    def _ends(self) -> Position | None:
        try:
            _, last = log_bounds(self._connection, self._plan.source.topic)
        except LastwordError:
            return None
        return last
