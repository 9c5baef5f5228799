"""The page of benchmark results: a run replaces its own section and states what it missed. Nothing here is timed."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.measuring.figures import Figure, Limit, Ratio, Result, stricter
from benchmarks.measuring.machine import machine_facts
from benchmarks.measuring.page import section, with_section, write_section
from lastword.core.errors import BadInput

OURS = Figure(what="lastword load", unit="records/s", rounds=(300_000.0, 310_000.0, 290_000.0))
THEIRS = Figure(what="bare loop", unit="records/s", rounds=(400_000.0, 410_000.0, 500_000.0))
RATIO = Ratio(what="whole process", ours=OURS, theirs=THEIRS, target=0.6)
RESULT = Result(
    name="load", title="Load", how="How it was done.", options="--records 9", figures=(OURS, THEIRS), ratios=(RATIO,)
)
FACTS = {"cores": "2", "Python": "3.11.7"}


def test_a_section_says_what_was_measured_where_and_how_to_repeat_it() -> None:
    text = section(RESULT, FACTS, "2031-05-06")
    assert "Every target is met. Measured on 2031-05-06 with `python -m benchmarks load --records 9`." in text
    assert "| lastword load | 300,000 | 290,000 | 310,000 | records/s | 3 |" in text
    assert "| whole process | 0.73 | 0.58 to 0.76 | at least 0.6: met |" in text
    assert "Machine: cores 2, Python 3.11.7." in text


def test_a_missed_target_is_stated_as_missed() -> None:
    missed = replace(RESULT, ratios=(replace(RATIO, target=0.9),))
    text = section(missed, FACTS, "2031-05-06")
    assert not missed.is_met
    assert "**A target is missed.**" in text
    assert "| at least 0.9: MISSED |" in text


@pytest.mark.parametrize(("target", "met"), [(0.7, False), (0.73, False), (0.75, True), (5, True)])
def test_at_most_is_met_from_below(target: float, met: bool) -> None:
    assert replace(RATIO, target=target, bound="at most").is_met is met


def test_the_ratio_is_of_medians_and_the_stricter_is_the_lowest() -> None:
    other = replace(RATIO, theirs=OURS)
    assert RATIO.value == pytest.approx(300 / 410)
    assert stricter(other, RATIO) is RATIO


@pytest.mark.parametrize(("target", "verdict"), [(1.5, "at most 1.5 s: met"), (1, "at most 1 s: MISSED")])
def test_a_figure_can_have_a_target_of_its_own(target: float, verdict: str) -> None:
    limit = Limit(figure=Figure(what="restart", unit="s", rounds=(1.25,)), target=target)
    result = replace(RESULT, ratios=(), limits=(limit,))
    text = section(result, FACTS, "2031-05-06")
    assert f"| restart | 1.25 | s | {verdict} |" in text
    assert "No target is set." not in text
    assert result.is_met is limit.is_met is (target == 1.5)


def test_an_alternative_with_one_round_is_compared_with_each_of_ours() -> None:
    once = replace(THEIRS, rounds=(100_000.0,))
    assert replace(RATIO, theirs=once).spread == "2.90 to 3.10"


def test_what_was_left_out_is_said_with_the_reason() -> None:
    told = replace(RESULT, left_out=("Kafka Streams, because there is no javac",))
    assert "\nLeft out here: Kafka Streams, because there is no javac.\n" in section(told, FACTS, "2031-05-06")
    assert told.as_json()["left_out"] == ["Kafka Streams, because there is no javac"]


def test_a_run_replaces_only_its_own_section() -> None:
    page = with_section("", "read", "<!-- bench:read -->\nread one\n<!-- /bench:read -->")
    page = with_section(page, "load", "<!-- bench:load -->\nload one\n<!-- /bench:load -->")
    page += "\nWritten by hand.\n"
    again = with_section(page, "read", "<!-- bench:read -->\nread two\n<!-- /bench:read -->")
    assert again == page.replace("read one", "read two")
    assert again.startswith("# Benchmarks\n")


@pytest.mark.parametrize(
    "page",
    [
        "<!-- bench:load --> no end",
        "<!-- /bench:load --> then <!-- bench:load -->",
        "<!-- bench:load --><!-- /bench:load --><!-- bench:load --><!-- /bench:load -->",
    ],
)
def test_a_page_with_broken_markers_is_left_alone(page: str) -> None:
    with pytest.raises(BadInput, match="markers"):
        with_section(page, "load", "new")


def test_a_page_is_made_where_there_is_none_and_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    write_section(tmp_path / "page.md", RESULT, FACTS, "2031-05-06")
    assert (tmp_path / "page.md").read_text().count("<!-- bench:load -->") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]
    with pytest.raises(BadInput, match="--write"):
        write_section(tmp_path / "none" / "page.md", RESULT, FACTS, "2031-05-06")


def test_the_machine_is_described_without_its_name_or_folders() -> None:
    facts = machine_facts(local_broker=True)
    assert list(facts)[:3] == ["cores", "CPU", "memory"]
    assert facts["Kafka"].startswith("4.")
    told = " ".join(facts.values())
    assert platform.node() not in told
    assert str(Path.home()) not in told
