"""The JSON of the board, one Struct for each shape: what teams write, what is kept in `board_state`, what is sent.

The lists of badges and reasons are here too, because the OpenAPI document names them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from lastword.core.shapes.field_types import Count, Rate, TimeMs

MOST_LETTERS = 100
MOST_TEAMS = 1000
MOST_LISTED = 100
# The format of the rows that the writer of the board keeps in `board_state`.
ROW_FORMAT = 1

CONNECTED, FIRST_ACTION, SHARED_WORK, FIRST_STATS = "connected", "first_action", "shared_work", "first_stats"

# The badges, in the order in which they are shown. A team that has earned a badge keeps it, with the time.
SYMBOLS: dict[str, str] = {
    CONNECTED: "🔌",
    FIRST_ACTION: "📤",
    SHARED_WORK: "⚖️",
    FIRST_STATS: "📊",
}

# Every reason for which a record is refused, and when.
REASONS: dict[str, str] = {
    "tombstone": "an action without a value",
    "not_json": "the value is not JSON",
    "not_object": "the value is JSON, and no object",
    "missing_field": "a field is missing",
    "not_text": "a field is not text",
    "empty_field": "a field is empty",
    "long_team": f"the team's name has more than {MOST_LETTERS} characters",
    "key_not_team": "the key is not the team's name",
    "not_count": "a counter is not a whole number from 0 on",
    "flagged_over_processed": "more were flagged than processed",
    "too_many_teams": "the board has no room for another team",
}

TeamKind = Literal["inside", "outside"]
BoardState = Literal["ready", "connecting"]
TeamName = Annotated[str, Meta(min_length=1, max_length=MOST_LETTERS)]
_Text = Annotated[str, Meta(min_length=1)]
_Counter = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_RATE = "Over the last ten seconds."
_REASONS = {"enum": list(REASONS)}
# Only the document lists the reasons and bounds the time: a row with others, kept by another version, is read as it is.
_Reason = Annotated[str, Meta(extra_json_schema=_REASONS)]
_RecordTime = Annotated[int, Meta(description="In ms.", extra_json_schema={"format": "int64", "minimum": -1})]


class ActionRecord(Struct, frozen=True, gc=False):
    """The value of a record of `actions`: a team wants something done about a customer. Other fields are ignored."""

    customer: _Text
    type: _Text
    reason: _Text
    team: TeamName


class StatsRecord(Struct, frozen=True, gc=False):
    """The value of a record of `team_stats`: the counters of a team. Other fields are ignored."""

    team: TeamName
    processed: _Counter
    flagged: _Counter


class RowFormat(Struct, frozen=True):
    """The field that every row of the board's writer has: read first, because it says how to read the others."""

    format: int


class TeamNumbers(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The latest valid numbers of a team, when they were written, and the highest numbers so far."""

    processed: int
    flagged: int
    at: int
    most_processed: int
    most_flagged: int

    @property
    def is_reset(self) -> bool:
        """Whether a counter went back and has not reached its old value again."""
        return self.processed < self.most_processed or self.flagged < self.most_flagged


class PartitionCount(Struct, kw_only=True, forbid_unknown_fields=True):
    """The row `TOPIC/PARTITION`: the counts of all records of one source partition before `next_offset`."""

    format: int = ROW_FORMAT
    topic_id: str  # a topic that was deleted and made again has another id
    next_offset: int = 0
    missed: int = 0  # offsets whose records expired before they were read
    actions: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, TeamNumbers]
    refused: dict[str, dict[str, int]] = field(default_factory=dict)  # by team, then by reason


class ListedRefusal(Struct, frozen=True, forbid_unknown_fields=True):
    """A refused record in the list of the last ones."""

    topic: str
    partition: Count
    offset: Count
    time: _RecordTime
    team: TeamName | None
    reason: _Reason
    words: str
    excerpt: Annotated[str | None, Meta(description="The beginning of the value; null for none.")]


class RefusedRow(Struct, frozen=True, kw_only=True):
    """The row `refused`: the last refused records, in the order in which they were read."""

    format: int = ROW_FORMAT
    last: list[ListedRefusal]


class BadgesRow(Struct, frozen=True, kw_only=True):
    """The row `badges/NAME`: when a team earned each of its badges, in ms."""

    format: int = ROW_FORMAT
    earned: dict[str, int]


class RegisteredTeam(Struct, frozen=True):
    """The row `team/NAME`: an outside team, which `lastword team add` has registered."""

    registered: int  # when, in ms


class TeamAccount(Struct, frozen=True):
    """What `lastword team add --json` prints."""

    team: str
    file: str  # where the settings are kept, with the password
    settings: dict[str, str]  # for librdkafka


class Badge(Struct, frozen=True):
    name: Annotated[str, Meta(extra_json_schema={"enum": list(SYMBOLS)})]
    symbol: Annotated[str, Meta(extra_json_schema={"enum": list(SYMBOLS.values())})]
    earned: TimeMs


class Team(Struct, frozen=True, kw_only=True):
    """A team on the board; a line of `lastword board --json`."""

    rank: Annotated[int, Meta(ge=1, extra_json_schema={"format": "int64"})]
    team: TeamName
    kind: TeamKind
    badges: Annotated[list[Badge], Meta(max_length=len(SYMBOLS))]
    lag: Annotated[Count | None, Meta(description="null while it is unknown.")]
    actions: Annotated[Count, Meta(description="Valid actions, exactly.")]
    processed: Annotated[Count | None, Meta(description="null while the team has written no numbers.")]
    flagged: Count | None
    actions_per_s: Annotated[Rate | None, Meta(description=_RATE)]
    processed_per_s: Annotated[Rate | None, Meta(description=_RATE)]
    reset: Annotated[bool, Meta(description="A counter went back and has not reached its old value again.")]
    refused: Count


class RefusedTotal(Struct, frozen=True):
    """How many records were refused, together and by reason."""

    total: Count
    reasons: Annotated[dict[str, Count], Meta(extra_json_schema={"propertyNames": _REASONS})]


class BoardAnswer(Struct, frozen=True, kw_only=True):
    """The teams in order. Also the content of the event `board`."""

    at: TimeMs
    state: BoardState
    written: Annotated[TimeMs | None, Meta(description="When board_state was written, in ms.")]
    missed: Annotated[Count, Meta(description="Offsets that expired before they were counted.")]
    refused: RefusedTotal
    teams: Annotated[list[Team], Meta(max_length=MOST_TEAMS)]


class RefusedCount(Struct, frozen=True):
    """How often records of a team were refused for a reason."""

    team: Annotated[TeamName | None, Meta(description="null where the team is unknown, or after too many names.")]
    reason: _Reason
    meaning: str
    count: Count


class RefusedAnswer(Struct, frozen=True):
    """The refused records: counted by team and reason, and the last of them."""

    at: TimeMs
    counts: list[RefusedCount]
    last: Annotated[list[ListedRefusal], Meta(max_length=MOST_LISTED, description="The newest first.")]
