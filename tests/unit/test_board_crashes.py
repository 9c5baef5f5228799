"""Whatever is kept together, and wherever the board begins anew, every record is counted once; and readers agree."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.core.record import Record
from lastword.teams.board.board_rows import BoardRows, rows_of
from lastword.teams.board.reader_view import ReaderView
from lastword.teams.board.tally import JudgedRecord, SourcePartition
from support.board_logs import ID, CrashingWriter, Log, action, begun, records_of, stats
from support.board_reference import Recount, recount, recount_of_tally

Logs = dict[tuple[str, int], Log]
Steps = list[tuple[str, int, int]]
PARTITIONS = 2

TEAMS = st.sampled_from(["a", "b", "team-3", "", "x" * 101])
VALUES = st.one_of(
    TEAMS.map(action),
    st.just(b'{"team": "a"}'),
    st.none(),
    st.binary(max_size=5),
)
NUMBERS = st.tuples(TEAMS, TEAMS, st.integers(-1, 5), st.integers(-1, 5), st.booleans()).map(
    lambda made: (made[0].encode(), None if made[4] and made[0] in "ab" and made[0] else stats(*made[1:4]))
)
# Of each partition its records, in order, with gaps between their offsets.
LOGS = st.fixed_dictionaries(
    {
        ("actions", partition): st.lists(st.tuples(st.integers(1, 3), VALUES.map(lambda value: (None, value))))
        for partition in range(PARTITIONS)
    }
    | {("team_stats", 0): st.lists(st.tuples(st.integers(1, 3), NUMBERS))}
)


STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "keep", "kill"]), st.integers(0, PARTITIONS), st.integers(1, 5)), max_size=40
)


def played(logs: Logs, steps: Steps) -> CrashingWriter:
    places = {SourcePartition(*place): records_of(place[1], log) for place, log in logs.items()}
    writer = CrashingWriter(places)
    for what, which, count in steps:
        if what == "read":
            writer.read(list(places)[which], count)
        elif what == "keep":
            writer.keep()
        else:
            writer.start()
    return writer


def reference(logs: dict[SourcePartition, list[Record]]) -> Recount:
    actions = [record for place, log in logs.items() if place.topic == "actions" for record in log]
    return recount(actions, logs[SourcePartition("team_stats", 0)])


@settings(max_examples=200)
@given(LOGS, STEPS)
def test_after_any_crashes_the_counts_are_those_of_a_recount(
    logs: Logs,
    steps: Steps,
) -> None:
    writer = played(logs, steps)
    writer.start()
    for place in writer.logs:
        writer.read(place, 10**6)
    assert recount_of_tally(writer.tally) == reference(writer.logs)


def test_the_recount_objects_to_a_writer_that_keeps_positions_apart_from_counts() -> None:
    logs = {
        SourcePartition("actions", 0): records_of(0, [(1, (None, action("a")))] * 5),
        SourcePartition("team_stats", 0): [],
    }
    writer = CrashingWriter(logs)
    writer.read(SourcePartition("actions", 0), 2)
    writer.keep()
    writer.lose_position()
    writer.start()
    writer.read(SourcePartition("actions", 0), 10)
    assert recount_of_tally(writer.tally) != reference(logs)


@settings(max_examples=200)
@given(LOGS, STEPS, STEPS)
def test_a_reader_beside_the_writer_agrees_with_it_wherever_each_of_them_is(
    logs: Logs,
    steps: Steps,
    reads: Steps,
) -> None:
    places = {SourcePartition(*place): records_of(place[1], log) for place, log in logs.items()}
    writer, reader = CrashingWriter(places), ReaderView(BoardRows(), agrees=True)
    for place in places:
        # There was nothing yet.
        reader.begin(begun(*place, end=0))
    # What the writer has decided by itself, and no record says.
    writer.tally.counts[SourcePartition("actions", 0)].missed = 5
    for (what, which, count), (_, other, pace) in zip(steps, reads, strict=False):
        place = list(places)[which]
        if what == "read":
            writer.read(place, count)
        elif what == "keep":
            rows = rows_of(writer.tally, writer.tally.changed | {"actions/0"})
            writer.tally.changed.clear()
            reader.agree([Record(key.encode(), value, 0, 0, 0) for key, value in rows.items()])
        stands = reader.tally.counts[list(places)[other]].next_offset
        for record in [each for each in places[list(places)[other]] if each.offset >= stands][:pace]:
            reader.take(JudgedRecord.of(list(places)[other].topic, ID, record))
    for place, log in places.items():
        writer.read(place, 10**6)
        for record in log:
            reader.take(JudgedRecord.of(place.topic, ID, record))
    assert recount_of_tally(reader.tally) == recount_of_tally(writer.tally) == reference(places)
    rows = rows_of(writer.tally, {str(place) for place in places} | set(writer.tally.changed))
    reader.agree([Record(key.encode(), value, 0, 0, 0) for key, value in rows.items()])
    assert not reader.is_ahead
    assert reader.tally.counts == writer.tally.counts
    assert set(reader.tally.listed) == set(writer.tally.listed)
