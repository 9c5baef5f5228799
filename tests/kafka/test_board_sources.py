"""A topic that the board counts, read through failures: no record is passed over, and none is counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from lastword.core.errors import ClusterUnreachable
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_snapshot import TopicProbe
from lastword.teams.board.board_rows import BoardRows
from lastword.teams.board.board_topics import ACTIONS
from lastword.teams.board.reader_view import ReaderView
from lastword.teams.board.source import CountedTopic
from support.board_reference import recount_of_tally
from support.boards import act, board_topics
from support.waiting import eventually


@pytest.fixture
def topics(connection: Connection) -> Iterator[Connection]:
    with board_topics(connection) as made:
        yield made


class Unanswered(TopicProbe):
    """The cluster does not answer every other question which topic it is."""

    def __init__(self, connection: Connection, topic: str) -> None:
        super().__init__(connection, topic)
        self.asked = 0

    def identity(self) -> str:
        self.asked += 1
        if self.asked % 2:
            raise ClusterUnreachable("no answer in time")
        return super().identity()


def test_records_are_counted_that_came_while_the_cluster_did_not_say_which_topic_it_is(topics: Connection) -> None:
    probe = Unanswered(topics, ACTIONS)
    source, shown = CountedTopic(topics, ACTIONS, probe), ReaderView(BoardRows(), agrees=False)

    def has_counted(count: int) -> bool:
        with suppress(ClusterUnreachable):
            source.poll(shown, 0.05)
        return source.is_at_end and recount_of_tally(shown.tally).actions.get("team-1", 0) >= count

    for count in (5, 10, 15):
        act(topics, *["team-1"] * 5)
        eventually(lambda count=count: has_counted(count))  # type: ignore[misc]
    source.close()
    assert recount_of_tally(shown.tally).actions == {"team-1": 15}
    assert probe.asked >= 6
