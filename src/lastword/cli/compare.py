"""The verb `compare`: whether two instances of `serve` have the same rows."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from lastword.cli import options
from lastword.cli.json_lines import CompareLine, DifferenceLine, DifferingRow
from lastword.cli.output import note, print_json, print_table, styled
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import counted, readable

if TYPE_CHECKING:
    from lastword.compare.key_order_merge import Comparison, Difference
    from lastword.compare.row_consistency import ComparedRow
    from lastword.compare.two_servers import ComparisonOutcome
    from lastword.core.codecs import Codec

_VALUE_LETTERS = 60


def parser(verb: str) -> argparse.ArgumentParser:
    parser = options.verb_parser(
        verb,
        "Compares the rows of two servers, also while clients write; exit code 1 if the rows differ. "
        "A row that one server has not read yet, by its position, is not a difference.",
        """lastword compare http://127.0.0.1:8090 http://127.0.0.1:8091
lastword compare http://127.0.0.1:8090/tables/users http://127.0.0.1:8091/tables/users --json""",
        compare,
    )
    parser.add_argument("first", metavar="URL", help="address of a server, or of one table")
    parser.add_argument("second", metavar="URL", help="address of the other server or table")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with lines `read TOKEN` or `write TOKEN`; both servers get its first token",
    )
    options.add_json(parser)
    return parser


def compare(args: argparse.Namespace) -> int:
    from lastword.compare.two_servers import compared
    from lastword.core.http_client import Address
    from lastword.serve.http.tokens import read_tokens

    addresses = (Address.parse(args.first), Address.parse(args.second))
    urls = (addresses[0].server, addresses[1].server)
    token = read_tokens(Path(args.token_file))[0][1] if args.token_file else None
    progress = _TableProgress()
    are_equal = True
    for outcome in compared(*addresses, token=token, on_progress=progress.update):
        progress.clear()
        are_equal = are_equal and outcome.is_equal
        if args.json:
            print_json(_json_line(outcome))
        else:
            _print(outcome, urls)
        for line in outcome.notes:
            note(line)
    return 0 if are_equal else 1


class _TableProgress:
    def __init__(self) -> None:
        self._table = ""
        self._progress = ProgressLine()

    def update(self, table: str, done: int, total: int) -> None:
        if table != self._table:
            self._table, self._progress = table, ProgressLine(f"comparing {table}")
        self._progress.share(done, min(1.0, done / total) if total else None)

    def clear(self) -> None:
        self._progress.clear()


def _print(outcome: ComparisonOutcome, urls: tuple[str, str]) -> None:
    print(styled(_line(outcome), "green" if outcome.is_equal else "red"))
    comparison = outcome.comparison
    if comparison is None or not comparison.differences:
        return
    table = []
    for difference in comparison.differences:
        values = _shortened(difference)
        for index, row in enumerate((difference.first, difference.second)):
            key = readable(difference.key, outcome.key_codec) if index == 0 else ""
            place = ["-", "-"] if row is None else [str(row.partition), str(row.offset)]
            table.append([f"  {key}", urls[index], *place, values[index]])
    print_table(["  KEY", "AT", "PARTITION", "OFFSET", "VALUE"], table)
    if comparison.different > len(comparison.differences):
        print(styled(f"  the first {len(comparison.differences)} of {comparison.different}", "dim"))


def _line(outcome: ComparisonOutcome) -> str:
    comparison = outcome.comparison
    if comparison is None:
        return f"{outcome.table}: not equal, no such table at {' and '.join(outcome.missing_at)}"
    result = f"equal, {counted(comparison.equal, 'row')}"
    if comparison.different:
        differ = "row differs" if comparison.different == 1 else "rows differ"
        result = f"not equal, {comparison.different} {differ}, {counted(comparison.equal, 'row')} equal"
    if outcome.topics is not None:
        one, two = (topic[:8] for topic in outcome.topics)
        why = f"two topics ({one} and {two}) have no common positions"
        return f"{outcome.table}: {result}; compared by key, value and headers only: {why}"
    explained = (
        f", {counted(comparison.explained, 'row')} explained by a lower position" if comparison.explained else ""
    )
    if comparison.left:
        explained += f", {counted(comparison.left, 'row')} explained by a lower log start{_log_starts(comparison)}"
    return f"{outcome.table}: {result} at {comparison.position or 'no position'}{explained}"


def _log_starts(comparison: Comparison) -> str:
    """The log starts of both servers in the partitions where they differ, in brackets; empty if none differ."""
    one, two = comparison.log_starts
    apart = [p for p in sorted(one.keys() | two.keys()) if one.get(p, 0) != two.get(p, 0)]
    first, second = (",".join(f"{p}:{start.get(p, 0)}" for p in apart) for start in (one, two))
    return f" ({first} and {second})" if apart else ""


def _json_line(outcome: ComparisonOutcome) -> CompareLine:
    comparison, topics = outcome.comparison, outcome.topics
    if comparison is None:
        return CompareLine(table=outcome.table, equal=False, missing_at=list(outcome.missing_at))
    return CompareLine(
        table=outcome.table,
        equal=outcome.is_equal,
        position=str(comparison.position) if topics is None else UNSET,
        log_starts=[str(start) for start in comparison.log_starts] if topics is None else UNSET,
        topics=UNSET if topics is None else list(topics),
        rows=comparison.equal,
        explained=comparison.explained,
        left=comparison.left,
        different=comparison.different,
        differences=[_difference_line(difference, outcome.key_codec) for difference in comparison.differences],
    )


def _difference_line(difference: Difference, key_codec: Codec) -> DifferenceLine:
    first, second = _shortened(difference)
    return DifferenceLine(
        readable(difference.key, key_codec),
        _differing_row(difference.first, first),
        _differing_row(difference.second, second),
    )


def _differing_row(row: ComparedRow | None, value: str) -> DifferingRow | None:
    if row is None:
        return None
    headers = json.loads(row.headers) if row.headers else UNSET
    return DifferingRow(row.partition, row.offset, row.timestamp, value, headers)


def _shortened(difference: Difference) -> tuple[str, str]:
    """Both values as text, cut to the place where they differ; with headers if only the headers differ."""
    rows = (difference.first, difference.second)
    values, headers = {row and row.value for row in rows}, {row and row.headers for row in rows}
    first, second = (_text(row, with_headers=len(values) == 1 < len(headers)) for row in rows)
    begin = 0
    if difference.first is not None and difference.second is not None:
        both = zip(first, second, strict=False)
        begin = next((at for at, (one, two) in enumerate(both) if one != two), min(len(first), len(second)))
    # Twenty characters before the difference show where in the value it is.
    begin = begin - 20 if begin > _VALUE_LETTERS - 20 else 0
    return _cut(first, begin), _cut(second, begin)


def _text(row: ComparedRow | None, *, with_headers: bool) -> str:
    if row is None:
        return "no row"
    text = row.value
    if with_headers:
        text += b" with the headers " + row.headers if row.headers else b" without headers"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text.decode(errors="replace"))


def _cut(text: str, begin: int) -> str:
    text = f"…{text[begin:]}" if begin else text
    return text if len(text) <= _VALUE_LETTERS else text[: _VALUE_LETTERS - 1] + "…"
