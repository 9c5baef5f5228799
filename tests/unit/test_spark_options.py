"""Options of the verbs on Spark."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime

import pytest

from lastword.cli.spark.spark_options import moment_or_position
from lastword.core.position import Position


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("0:18,1:5", Position({0: 18, 1: 5})),
        ("12:30", Position({12: 30})),
        ("2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T13:00:00+01:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        # As `scan` shows it, which is UTC.
        ("2026-03-01 12:00:00.500", datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("20260301", datetime(2026, 3, 1, tzinfo=UTC)),
        ("1772366400000", datetime(2026, 3, 1, 12, tzinfo=UTC)),
    ],
)
def test_a_position_or_a_time_is_understood(text: str, meaning: Position | datetime) -> None:
    assert moment_or_position(text) == meaning


@pytest.mark.parametrize("text", ["", "yesterday", "0-5", "5", "99999999999999999999", "0:1,0:2"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="neither a position like 0:18,1:5 nor a time"):
        moment_or_position(text)
