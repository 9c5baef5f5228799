"""The page of results: one section for each benchmark, between markers, so that a run replaces only its section."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measuring.figures import Result
from lastword.core.errors import BadInput

_HEAD = """\
# Benchmarks

<!-- Made by `python -m benchmarks NAME --write FILE`: don't edit between the markers, run the benchmark again. -->

Each benchmark runs lastword and the alternatives in turns, in one run on one machine, and gives medians. Look at the
ratios: they depend far less on the machine than the figures.
"""


def section(result: Result, facts: Mapping[str, str], day: str) -> str:
    """The Markdown of one benchmark, with its markers."""
    met = "Every target is met." if result.is_met else "**A target is missed.**"
    if not result.has_target:
        met = "No target is set."
    figures = [
        f"| {each.what} | {each.text(each.median)} | {each.text(min(each.rounds))} | {each.text(max(each.rounds))} "
        f"| {each.unit} | {len(each.rounds)} |"
        for each in result.figures
    ]
    left_out = ["Left out here: " + "; ".join(result.left_out) + ".", ""] if result.left_out else []
    ratios = [f"| {each.what} | {each.value:.2f} | {each.spread} | {each.verdict} |" for each in result.ratios]
    lines = [
        _begin(result.name),
        f"## {result.title}",
        "",
        f"{met} Measured on {day} with `{result.command}`.",
        "",
        result.how,
        "",
        *left_out,
        "| ratio of medians | value | in single rounds | target |",
        "|---|---:|---:|---|",
        *ratios,
        "",
        *_limits(result),
        "| measured | median | lowest | highest | unit | rounds |",
        "|---|---:|---:|---:|---|---:|",
        *figures,
        "",
        "Machine: " + ", ".join(f"{name} {fact}" for name, fact in facts.items()) + ".",
        _end(result.name),
    ]
    return "\n".join(lines)


def _limits(result: Result) -> list[str]:
    """The table of figures that have a target; no lines if there are none."""
    if not result.limits:
        return []
    limits = [
        f"| {each.figure.what} | {each.figure.text(each.figure.median)} | {each.figure.unit} | {each.verdict} |"
        for each in result.limits
    ]
    return ["| figure with a target | median | unit | target |", "|---|---:|---|---|", *limits, ""]


def with_section(page: str, name: str, text: str) -> str:
    """The page with the section of `name` replaced, or added at the end; BadInput for a page with a broken marker."""
    begin, end = _begin(name), _end(name)
    if page.count(begin) != page.count(end) or page.count(begin) > 1 or page.find(begin) > page.find(end):
        raise BadInput(f"the markers {begin} and {end} must both be there once, in this order: repair or remove them")
    if begin not in page:
        return f"{(page or _HEAD).rstrip()}\n\n{text}\n"
    before, _, rest = page.partition(begin)
    return before + text + rest.partition(end)[2]


def write_section(file: Path, result: Result, facts: Mapping[str, str], day: str) -> None:
    try:
        page = file.read_text(encoding="utf-8") if file.exists() else ""
        new = with_section(page, result.name, section(result, facts, day))
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_text(new, encoding="utf-8")
        draft.replace(file)
    except OSError as failure:
        raise BadInput(f"{file}: {failure.strerror}: give a file that can be written with --write") from None
    except BadInput as refusal:
        raise BadInput(f"{file}: {refusal}") from None


def _begin(name: str) -> str:
    return f"<!-- bench:{name} -->"


def _end(name: str) -> str:
    return f"<!-- /bench:{name} -->"
