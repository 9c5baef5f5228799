"""A served table: its name, its codecs, its replica and its writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from lastword.core.codecs import Codec
from lastword.core.errors import LastwordError, NotReady, StoreDamaged
from lastword.replica.reads import TableReads
from lastword.replica.replica import Replica
from lastword.serve.http.answers import Refused
from lastword.serve.tables.writes import Writes

_Found = TypeVar("_Found")


class ServedTable(NamedTuple):
    name: str
    key_codec: Codec
    value_codec: Codec
    replica: Replica
    writes: Writes
    # Whether the table has short routes: bare values at `/NAME`, `/NAME/KEY` and `/NAME/count`.
    short: bool = False

    def ask(self, question: Callable[[TableReads], _Found]) -> _Found:
        """The result of a read of the store; Refused while the table can't be read."""
        try:
            return self.replica.ask(question)
        except NotReady:
            # The message of the error is for a program in this process.
            raise self.not_ready() from None
        except StoreDamaged:
            raise self.damaged() from None

    @property
    def lag(self) -> int | None:
        """None while no request came lately: the end of the topic is not read then."""
        state = self.replica.state
        is_asked = state.watches_end if state.name == "failed" else state.name != "connecting"
        return self.replica.lag if is_asked else None

    def damaged(self) -> Refused:
        return Refused(
            "store_damaged",
            f"the server's copy of the table {self.name} is damaged, and is now built again from Kafka",
            f"ask again soon; the progress is at /tables/{self.name}",
        )

    def not_ready(self) -> Refused:
        return Refused(
            "not_ready",
            f"the table {self.name} can't be read yet: it is {self.replica.state.name}",
            f"ask again soon; the status is at /tables/{self.name}",
        )


def shown_topic(replica: Replica) -> str | None:
    """The id of the topic whose rows the replica has; None while it can't be read."""
    try:
        return replica.ask(lambda reads: reads.topic_id)
    except LastwordError:
        return None
