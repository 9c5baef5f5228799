"""What verbs print with --json: the same fields, in the same order, as the documentation has them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lastword.cli.json_lines import (
    CheckLine,
    CompareLine,
    DifferenceLine,
    DifferingRow,
    LastExit,
    MistakeLine,
    PartLine,
)
from lastword.cli.output import print_json

CLI = Path(__file__).parents[2] / "src" / "lastword" / "cli"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            CompareLine(table="users", equal=False, missing_at=["http://b"]),
            '{"table": "users", "equal": false, "missing_at": ["http://b"]}',
        ),
        (
            CompareLine(
                table="users",
                equal=False,
                position="0:1",
                log_starts=["0:0", "0:1"],
                rows=1,
                explained=0,
                left=0,
                different=1,
                differences=[DifferenceLine("é", DifferingRow(0, 1, 2, "{}", [["a", "b"]]), None)],
            ),
            (
                '{"table": "users", "equal": false, "position": "0:1", "log_starts": ["0:0", "0:1"], "rows": 1, '
                '"explained": 0, "left": 0, "different": 1, "differences": [{"key": "é", "first": {"partition": 0, '
                '"offset": 1, "timestamp": 2, "value": "{}", "headers": [["a", "b"]]}, "second": null}]}'
            ),
        ),
        (
            PartLine(
                part="serve",
                state="running",
                pid=5,
                since=1,
                restarts=2,
                last_exit=LastExit(3, -9, "", "was killed"),
                log="/log",
            ),
            (
                '{"part": "serve", "id": null, "state": "running", "address": null, "pid": 5, "since": 1, '
                '"restarts": 2, "last_exit": {"at": 3, "code": -9, "said": "", "told": "was killed"}, "log": "/log"}'
            ),
        ),
        (
            CheckLine("a.toml", 1, 2, [MistakeLine(3, "no such field", False)]),
            (
                '{"file": "a.toml", "rules": 1, "tables": 2, '
                '"mistakes": [{"line": 3, "text": "no such field", "is_unreachable": false}]}'
            ),
        ),
    ],
)
def test_a_line_has_the_fields_that_a_program_knows(
    line: object, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_json(line)
    assert capsys.readouterr().out == text + "\n"


def test_no_verb_prints_a_dictionary() -> None:
    calls = [
        (path.name, call.lineno, call.args[0])
        for path in CLI.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "print_json"
    ]
    assert len(calls) > 10
    assert [call[:2] for call in calls if isinstance(call[2], ast.Dict)] == []
