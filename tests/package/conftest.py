"""The wheel and the sdist that `make package` has built, and environments outside the checkout with the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

import lastword
from support.command_line import CommandLine
from support.installed_package import ROOT, InstalledCommand, install
from support.programs import jars_without_archives

_DIST = ROOT / "dist"


def built(pattern: str) -> Path:
    found = sorted(_DIST.glob(pattern))
    assert len(found) == 1, f"dist/ has {found or 'nothing'} for {pattern}: run  make package"
    return found[0]


@pytest.fixture(scope="session")
def wheel() -> Path:
    return built(f"lastword-{lastword.__version__}-py3-none-any.whl")


@pytest.fixture(scope="session")
def sdist() -> Path:
    return built(f"lastword-{lastword.__version__}.tar.gz")


@pytest.fixture(scope="session")
def base_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "venv"
    install(wheel, folder)
    return folder


@pytest.fixture(scope="session")
def full_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full") / "venv"
    install(wheel, folder, ("spark", "java"))
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a folder that has nothing to do with the checkout."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def base(base_folder: Path, elsewhere: Path, lastword: CommandLine) -> InstalledCommand:
    """Without extras, pointed at the tests' cluster."""
    return InstalledCommand(folder=base_folder, home=elsewhere / "home", environ=lastword.environ)


@pytest.fixture
def full(full_folder: Path, elsewhere: Path) -> InstalledCommand:
    """With Spark and Java, and with no cluster."""
    # A class archive belongs to the path of an installation: one in the shared cache would stay there for good.
    jars = jars_without_archives(elsewhere / "jars")
    return InstalledCommand(folder=full_folder, home=elsewhere / "home", environ={"LASTWORD_JARS": str(jars)})
