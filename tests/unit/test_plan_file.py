"""Reading a pipeline file: what it says, and every mistake of its form with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lastword.core.errors import BadInput
from lastword.pipeline.plan.plan import KeptTable, Rule
from lastword.pipeline.plan.plan_file import read_plan
from lastword.teams.users.generated_users import USER_SCHEMA

ROOT = Path(__file__).parents[2]
GOOD = """\
app = "shop"

[source]
topic = "orders"
schema = "id STRING"

[[rules]]
name = "all"
when = "true"
to = "copies"
value = { id = "id" }

[[tables]]
topic = "counts"
key = "rule"
counters = { seen = "1" }
"""


def mistakes(folder: Path, text: str) -> list[str]:
    """What is told of a file with this text."""
    (folder / "p.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    plan = read_plan(folder / "p.toml")
    return [mistake.as_line("p.toml") for mistake in plan.mistakes]


def changed(*changes: tuple[str, str]) -> str:
    """The good file with some of it replaced."""
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_a_file_says_a_pipeline(tmp_path: Path) -> None:
    assert mistakes(tmp_path, changed(('to = "copies"', 'to = "copies"\nkey = "id"'))) == []
    pipeline = read_plan(tmp_path / "p.toml").pipeline
    assert (pipeline.app, pipeline.source.topic, pipeline.source.schema) == ("shop", "orders", "id STRING")
    assert pipeline.rules == (Rule(name="all", when="true", to="copies", value={"id": "id"}, key="id"),)
    assert pipeline.tables == (KeptTable(topic="counts", key="rule", counters={"seen": "1"}),)


def test_a_key_and_tables_are_optional(tmp_path: Path) -> None:
    assert mistakes(tmp_path, GOOD.partition("[[tables]]")[0]) == []
    assert read_plan(tmp_path / "p.toml").pipeline.rules[0].key is None


@pytest.mark.parametrize(("name", "rules", "tables"), [("teams", 15, 1), ("orders", 3, 2)])
def test_the_shipped_files_are_well_formed(name: str, rules: int, tables: int) -> None:
    plan = read_plan(ROOT / f"pipelines/{name}.toml")
    assert plan.mistakes == ()
    assert (plan.pipeline.app, len(plan.pipeline.rules), len(plan.pipeline.tables)) == (name, rules, tables)


LIKE_WHEN = 'write it like  when = "credit < 0"'
LIKE_VALUE = 'write it like  value = { customer = "email", team = "rule" }'
LETTERS = "use only letters, digits, '.', '_' and '-'"
NOT_INTERNAL = "name one without the leading '__'"
ELSE = "correct it to see other mistakes"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('when = "true"', "when = true", f"9: rule all, when: is true or false, not text: {LIKE_WHEN}"),
        ('when = "true"', 'when = " "', f"9: rule all, when: is empty: {LIKE_WHEN}"),
        (
            'seen = "1"',
            "seen = 1",
            '16: table counts, counters, seen: is a whole number, not text: write it like  seen = "..."',
        ),
        ('value = { id = "id" }', "value = {}", f"11: rule all, value: is empty: {LIKE_VALUE}"),
        ('value = { id = "id" }', 'value = "id"', f"11: rule all, value: is text, not a table: {LIKE_VALUE}"),
        ("[[rules]]", "[rules]", "7: rules: is a table, not a list of tables: write it like  [[rules]]"),
        ('app = "shop"', "app = 2026-01-01", '1: app: is a time, not text: write it like  app = "teams"'),
        ('app = "shop"', 'app = "my shop"', f"1: app: pipeline name 'my shop' has ' ' in it: {LETTERS}"),
        ('name = "all"', 'name = "a/b"', f"8: rule no. 1, name: rule name 'a/b' has '/' in it: {LETTERS}"),
        ('"copies"', '"co pies"', f"10: rule all, to: topic name 'co pies' has ' ' in it: {LETTERS}"),
        (
            '"copies"',
            '"__copies"',
            f"10: rule all, to: topic '__copies' is internal, lastword does not write to it: {NOT_INTERNAL}",
        ),
        (
            '"copies"',
            '"orders"',
            "10: rule all, to: 'orders' is the source, and the pipeline would read its own records: name another topic",
        ),
        (
            '"copies"',
            '"counts"',
            "10: rule all, to: 'counts' is a table of this file, for counters alone: name another topic",
        ),
        (
            '"counts"',
            '"shop-status"',
            "14: table shop-status, topic: 'shop-status' is a topic of the pipeline itself: name another topic",
        ),
        (
            'seen = "1"',
            'seen = "1", rule = "1"',
            "16: table counts: the counter 'rule' has the name of the table's key: rename one of them",
        ),
        ('"all"', '"all', f"8: not TOML: Illegal character '\\n' (at line 8, column 12): {ELSE}"),
        ('{ seen = "1" }', '{ seen = """', f"16: not TOML: Unterminated string (at end of document): {ELSE}"),
        ('"all"', '"\udcff"', "8: not UTF-8 text: save the file as UTF-8"),
        (
            '"all"',
            "9" * 5000,
            "1: a number with too many digits, or too many brackets: no pipeline needs them",
        ),
    ],
)
def test_a_mistake_has_its_line_and_what_to_do(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert mistakes(tmp_path, changed((old, new))) == [f"p.toml:{told}"]


@pytest.mark.parametrize(
    ("old", "new", "missing", "unknown"),
    [
        (
            "when =",
            "wen =",
            "7: rule all: 'when' is missing: add it, like  when = \"credit < 0\"",
            "9: rule all: unknown key 'wen': did you mean 'when'?",
        ),
        (
            "name =",
            "colour =",
            "7: rule no. 1: 'name' is missing: add it, like  name = \"in-debt\"",
            "8: rule no. 1: unknown key 'colour': it takes name, when, to, key, value",
        ),
        (
            "[source]",
            "[sorce]",
            "1: 'source' is missing: add it, like  [source]",
            "3: unknown key 'sorce': did you mean 'source'?",
        ),
    ],
)
def test_a_mistyped_key_is_unknown_and_the_right_one_missing(
    tmp_path: Path, old: str, new: str, missing: str, unknown: str
) -> None:
    assert mistakes(tmp_path, changed((old, new))) == [f"p.toml:{missing}", f"p.toml:{unknown}"]


def test_an_app_is_so_short_that_its_topics_have_a_name(tmp_path: Path) -> None:
    assert mistakes(tmp_path, changed(("shop", "s" * 230))) == []
    [told] = mistakes(tmp_path, changed(("shop", "s" * 231)))
    assert told.endswith("has 231 characters: use at most 230")


def test_rules_and_tables_are_there_once_each(tmp_path: Path) -> None:
    rule, table = GOOD.partition("[[rules]]")[2].partition("[[tables]]")[0], GOOD.partition("[[tables]]")[2]
    assert mistakes(tmp_path, f"{GOOD}\n[[rules]]{rule}[[tables]]{table}") == [
        "p.toml:19: a second rule called 'all' (the first one: line 8): give it another name",
        "p.toml:25: a second table in the topic 'counts' (the first one: line 14): give it another topic",
    ]


def test_a_file_without_rules_or_with_nothing_in_it_says_so(tmp_path: Path) -> None:
    without = "rules = []\n" + GOOD.partition("[[rules]]")[0]
    assert mistakes(tmp_path, without) == ["p.toml:1: no rules: add one, like  [[rules]]"]
    assert mistakes(tmp_path, "") == [
        "p.toml:1: 'app' is missing: add it, like  app = \"teams\"",
        "p.toml:1: 'source' is missing: add it, like  [source]",
        "p.toml:1: 'rules' is missing: add it, like  [[rules]]",
    ]


def test_all_mistakes_come_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    told = mistakes(
        tmp_path,
        changed(
            ('app = "shop"', 'app = "a/b"\nversion = 1'),
            ("schema =", "shema ="),
            ("when =", "wen ="),
            ('seen = "1"', "seen = 1"),
        ),
    )
    assert [line.split(":")[1] for line in told] == ["1", "2", "4", "6", "8", "10", "17"]


def test_ends_of_line_of_another_system_count_as_one_line_each(tmp_path: Path) -> None:
    assert mistakes(tmp_path, changed(("wh" + "en =", "wen =")).replace("\n", "\r\n"))[1].startswith("p.toml:9: ")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"pipeline file .*none\.toml: No such file or directory: check the path"):
        read_plan(tmp_path / "none.toml")


def test_the_page_shows_the_shipped_files_as_they_are() -> None:
    page = (ROOT / "docs/pipeline.md").read_text()
    shipped = [path.read_text() for path in (ROOT / "pipelines").glob("*.toml")]
    blocks = [block for block in re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S) if "# broken" not in block]
    assert len(blocks) == 2
    for block in blocks:
        parts = block.split("# ...\n")
        assert [part for part in parts if not any(part.strip() in file for file in shipped)] == []


def test_the_schema_of_the_fraud_pipeline_is_that_of_the_generated_users() -> None:
    plan = read_plan(str(ROOT / "pipelines" / "teams.toml"))

    assert plan.pipeline.source.schema.split() == USER_SCHEMA.split()
