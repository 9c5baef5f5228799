"""What is in the wheel and in the sdist, and what is not."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import lastword
from support.installed_package import ROOT, metadata

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as files:
        return {*files.namelist()}


def sources() -> set[str]:
    """Every file of the package in the checkout, as the wheel names it."""
    package = ROOT / "src" / "lastword"
    found = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(package.parent)) for path in found}


def test_the_wheel_has_the_package_its_metadata_the_man_page_and_nothing_else(names: set[str]) -> None:
    distribution = f"lastword-{lastword.__version__}"
    own = {name for name in names if not name.startswith(f"{distribution}.")}
    assert own == sources()
    assert names - own == {
        *(f"{distribution}.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")),
        f"{distribution}.dist-info/licenses/LICENSE",
        f"{distribution}.data/data/share/man/man1/lastword.1",
    }


@pytest.mark.parametrize(
    "name",
    [
        "lastword/py.typed",
        "lastword/console/page/index.html",
        "lastword/console/page/views/table.js",
        "lastword/console/page/views.css",
        "lastword/console/page/favicon.svg",
        "lastword/jvm/broker.lock",
        "lastword/jvm/spark.lock",
        "lastword/teams/teams.toml",
        "lastword/spark/session/log4j2.properties",
        "lastword/spark/session/java_home/bin/java",
    ],
)
def test_a_file_that_is_no_module_is_in_the_wheel(name: str, names: set[str]) -> None:
    assert name in names


def test_the_wheel_keeps_the_program_executable(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        assert files.getinfo("lastword/spark/session/java_home/bin/java").external_attr >> 16 & 0o111 == 0o111


def test_the_metadata_says_what_pip_needs_to_know(wheel: Path) -> None:
    about = metadata(wheel)
    assert (about["Name"], about["Version"], about["License-Expression"]) == (
        "lastword",
        lastword.__version__,
        "Apache-2.0",
    )
    assert about["Requires-Python"] == ">=3.11"
    assert about.get_all("Provides-Extra") == ["java", "spark"]


def test_the_sdist_has_no_file_that_a_build_or_a_run_has_made(sdist: Path) -> None:
    with tarfile.open(sdist) as files:
        parts = {tuple(Path(name).parts[1:]) for name in files.getnames()}
    made = {".venv", ".venv-package", "dist", "build", "__pycache__", ".mypy_cache", ".pytest_cache", ".git"}
    assert {part[0] for part in parts if part} >= {"src", "tests", "docs", "deploy", "Makefile", "requirements.lock"}
    assert {part for part in parts if made & {*part} or part[:1] == ("site",)} == set()


def test_the_sdist_alone_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as files:
        files.extractall(tmp_path, filter="data")
    [folder] = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()
