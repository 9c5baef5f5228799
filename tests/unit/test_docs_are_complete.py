"""Every public name, verb, option and setting is in the docs."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import sys
from pathlib import Path

import pytest

import lastword
from lastword.cli import VERBS
from lastword.replica.replica import Replica
from lastword.replica.settings import ReplicaSettings
from lastword.serve.changes.change_streams import Streams
from lastword.serve.http.error_codes import ERROR_CODES
from lastword.serve.http.limits import Limits
from lastword.serve.metrics import Metrics, Requests
from lastword.serve.tables.position_wait import PositionWaits
from lastword.serve.tables.row_streams import RowStreams
from lastword.teams.board.board_shapes import REASONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "DESIGN.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
SOURCES = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
TESTS = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py")))


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(lastword.__all__) == [
        "Ack",
        "AlreadyExists",
        "BadInput",
        "Cluster",
        "ClusterUnreachable",
        "FellBehind",
        "HistoryLost",
        "LastwordError",
        "NotEnoughReplicas",
        "NotFound",
        "NotReady",
        "Position",
        "Replica",
        "ReplicaUnusable",
        "Row",
        "Table",
        "TopicChanged",
        "Watch",
        "WriteFailed",
        "connect",
        "local",
    ]
    assert all(hasattr(lastword, name) for name in lastword.__all__)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_on_the_page_of_the_command_line(verb: str) -> None:
    assert f"\n## lastword {verb}\n" in (DOCS / "command-line.md").read_text()


def test_every_environment_variable_is_on_the_settings_page() -> None:
    read = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', SOURCES))
    assert "LASTWORD_HOME" in read
    page = (DOCS / "settings.md").read_text()
    assert [name for name in sorted(read) if name not in page] == []


def test_the_generated_pages_are_what_the_code_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from write_docs import PAGES

    for name, page in PAGES.items():
        assert (DOCS / name).read_text() == page(), f"docs/{name} is stale: run  make docs"
    sys.modules.pop("write_docs")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_or_a_test_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    files = re.findall(r"`([\w.-]+/[\w./-]+\.(?:py|js|lock|toml))`", text)
    assert [name for name in files if not ((ROOT / name).exists() or (ROOT / "src/lastword" / name).exists())] == []
    tests = set(re.findall(r"`(test_\w+)`", text))
    assert sorted(name for name in tests if f"def {name}(" not in TESTS) == []
    modules = set(re.findall(r"`lastword((?:\.[a-z_]+)+)[`(]", text))
    assert sorted(name for name in modules if not _is_ours(name.split(".")[1:])) == []


def _is_ours(names: list[str]) -> bool:
    """Whether `lastword.NAME.NAME` is a module, or a name of one."""
    module = ROOT.joinpath("src/lastword", *names)
    above = [module.parent / "__init__.py", module.parent.with_suffix(".py")]
    return (
        module.is_dir()
        or module.with_suffix(".py").exists()
        or any(re.search(rf"\b{names[-1]}\b", path.read_text()) for path in above if path.exists())
    )


@pytest.mark.parametrize("field", dataclasses.fields(ReplicaSettings), ids=lambda field: field.name)
def test_every_setting_of_a_replica_is_on_its_page_with_its_default(field: dataclasses.Field[object]) -> None:
    default = f'`"{field.default}"`' if isinstance(field.default, str) else f"{field.default:g}"
    if isinstance(field.default, int):
        default = str(field.default)
    assert f"| `{field.name}` | {default} |" in (DOCS / "replica.md").read_text()


@pytest.mark.parametrize("field", dataclasses.fields(Limits), ids=lambda field: field.name)
def test_every_limit_of_http_is_on_its_page_with_its_default(field: dataclasses.Field[object]) -> None:
    assert f"| `{field.name}` | {str(field.default).removesuffix('.0')} |" in (DOCS / "http.md").read_text()


@pytest.mark.parametrize("code", ERROR_CODES)
def test_every_error_code_of_http_is_on_its_page(code: str) -> None:
    row = ERROR_CODES[code]
    assert f"| {row.status} | `{code}` | {row.meaning} | {row.hint} |" in (DOCS / "http.md").read_text()


def test_every_reason_to_refuse_a_record_is_on_the_page_of_the_board_with_its_meaning() -> None:
    page = (DOCS / "board.md").read_text()
    assert [reason for reason, meaning in REASONS.items() if f"| `{reason}` | {meaning}" not in page] == []


@pytest.mark.parametrize("name", [name for name in vars(Replica) if not name.startswith("_")])
def test_everything_a_replica_offers_is_on_its_page(name: str) -> None:
    if name not in ("close", "is_closed", "folder", "topic"):
        assert re.search(rf"`(?:replica\.)?{name}\b", (DOCS / "replica.md").read_text())


def test_every_metric_is_on_the_page_of_operating() -> None:
    page = (DOCS / "operating.md").read_text()
    row_streams = RowStreams(Limits(), asyncio.to_thread)
    made = Metrics([], Requests(), Streams(Limits(), PositionWaits(Limits())), row_streams)
    names = {f"{each.name}_total" if each.type == "counter" else each.name for each in made.collect()}
    assert len(names) >= 10
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
