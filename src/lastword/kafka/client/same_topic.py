"""Whether a write goes to the expected topic: a topic may be deleted, and another topic created under its name.

Kafka's clients name a topic in a write by its name alone, so the id is asked for beside the write. An id is never used
twice: if the topic has the expected id after an acknowledgement, it had this id during the whole write, as far as the
asked broker knows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, TopicCollection

from lastword.core.errors import ClusterUnreachable, NotFound, TopicChanged
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import answer

# A look this recent is not repeated before a write: the look after one write serves the next write.
_FRESH_S = 0.02
# If the cluster does not answer in this time, the write is sent anyway: the write waits for longer.
_BEFORE_S = 1.0
_GLIMPSE_S = 0.05
# A question goes to the broker that the client takes for the controller. Seconds after a broker's death that may be
# the dead one, and the client waits for it in vain. So the question is asked again, after fresh metadata that may name
# another broker; each time with twice the patience, because the cluster may only be slow.
_FIRST_ASK_S = 1.0

# How long a topic counts as new, and how long the question is repeated after an unexpected answer about a new topic.
_NEW_S = 5.0
_AGAIN_S = 1.0


class SameTopic:
    """Checks before, during and after writes that the topic is still the same. Thread-safe."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        patience_s: float,
        expected_id: Callable[[], str | None] | None = None,
    ) -> None:
        """`expected_id` gives the id to expect at each write; without it the id at the first look is expected."""
        self.admin = connection.admin()
        connection.topic(topic, self.admin)
        self._topic = topic
        # A look has at least the patience of any other request, even if the write itself has less.
        self._patience_s = max(patience_s, connection.patience_s)
        self._expected_id = expected_id
        self._gave_up = threading.Event()
        self._known_at = time.monotonic()
        self._seen = ("", self._known_at)
        self._topic_id = self._found(None, within_s=self._patience_s)
        if not self._topic_id:
            raise self._gone()

    def before(self) -> str:
        """The id to expect after the write. NotFound or TopicChanged if the topic is another: write nothing then."""
        topic_id = (self._expected_id() if self._expected_id is not None else None) or self._topic_id
        if topic_id != self._topic_id:
            self._topic_id, self._known_at = topic_id, time.monotonic()
        if self._was_just_seen(topic_id):
            return topic_id
        try:
            found = self._found(topic_id, within_s=_BEFORE_S)
        except ClusterUnreachable:
            # The write waits for the cluster, and the look after the write decides.
            return topic_id
        if not found:
            raise self._gone()
        if found != topic_id:
            raise TopicChanged(
                f"{self._topic} was deleted and made again (its id was {topic_id}, now it is {found}): nothing was "
                "written; open the table again to write to the new topic"
            )
        return topic_id

    def meanwhile(self, topic_id: str) -> None:
        """During writes: TopicChanged as soon as the cluster shows another topic; no error if the cluster is away."""
        if not self._was_just_seen(topic_id):
            with suppress(ClusterUnreachable):
                self.after(topic_id, within_s=_BEFORE_S)

    def after(self, topic_id: str, *, within_s: float | None = None) -> None:
        """Returns if acknowledged writes are in the expected topic; TopicChanged if they may be in another one."""
        try:
            found = self._found(topic_id, within_s=within_s or self._patience_s)
        except ClusterUnreachable as failure:
            raise ClusterUnreachable(
                f"writing to {self._topic}: acknowledged, but no answer whether the topic is still the same: {failure}"
            ) from None
        if found != topic_id:
            became = "deleted" if not found else f"deleted and made again (its id is {found} now)"
            raise TopicChanged(
                f"{self._topic} was {became} during the write: the write is lost or in the new topic; read the row"
            )

    def give_up(self) -> None:
        """Ends the looks that are under way; from any thread."""
        self._gave_up.set()

    def _was_just_seen(self, topic_id: str) -> bool:
        seen, at = self._seen
        return seen == topic_id and time.monotonic() - at < _FRESH_S

    def _found(self, topic_id: str | None, *, within_s: float) -> str:
        """The id that the topic has now, empty without a topic; ClusterUnreachable without an answer.

        A broker hears of a new topic a moment after the others. So while the topic is new, the question is repeated if
        the answer is not `topic_id` (for None: if the answer is "no topic").
        """
        give_up_at = min(time.monotonic() + _AGAIN_S, self._known_at + _NEW_S)
        while True:
            found = self._look(within_s)
            if (found == topic_id if topic_id is not None else found) or time.monotonic() >= give_up_at:
                return found
            time.sleep(_GLIMPSE_S)

    def _look(self, within_s: float) -> str:
        give_up_at, ask_s = time.monotonic() + within_s, _FIRST_ASK_S
        while True:
            left_s = give_up_at - time.monotonic()
            try:
                found = self._ask(max(_GLIMPSE_S, min(ask_s, left_s)))
                break
            except ClusterUnreachable:
                if left_s <= ask_s or self._gave_up.is_set():
                    raise
            with suppress(KafkaException):
                self.admin.list_topics(self._topic, timeout=_FIRST_ASK_S)
            ask_s *= 2
        self._seen = (found, time.monotonic())
        return found

    def _ask(self, within_s: float) -> str:
        future = self.admin.describe_topics(TopicCollection([self._topic]), request_timeout=within_s)[self._topic]
        try:
            return str(self.answered(future).topic_id)
        except NotFound:
            return ""

    def _gone(self) -> NotFound:
        return NotFound(
            f"writing to {self._topic}: the topic was deleted, and nothing was written: make it again with  "
            f"lastword topic create {self._topic}"
        )

    def answered(self, future: Future[Any]) -> Any:
        """The answer of the cluster; ClusterUnreachable as soon as the writes are given up."""
        while not self._gave_up.is_set():
            try:
                future.exception(_GLIMPSE_S)
            except TimeoutError:
                continue
            return answer(future, f"writing to {self._topic}")
        raise ClusterUnreachable(f"writing to {self._topic}: given up")
