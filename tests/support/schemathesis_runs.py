"""Schemathesis as a process: it makes requests from an OpenAPI document and checks every answer against it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# For each operation; a soak has more.
EXAMPLES = 10 * int(os.environ.get("LASTWORD_SOAK", "1"))
# Streams have no end: other tests compare their events with the document. Their HEAD is included.
NO_STREAMS = ("--exclude-name-regex", "^GET .*/changes$")
_TESTS = Path(__file__).parents[1]


def schemathesis(location: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A run with every check, as a process; the same requests each time."""
    config = _TESTS / "support/schemathesis.toml"
    command = [str(Path(sys.executable).parent / "st"), "--config-file", str(config), "run", "--no-color", location]
    environ = {**os.environ, "PYTHONPATH": str(_TESTS), "PYTHONWARNINGS": "default"}
    return subprocess.run(
        [*command, "--checks", "all", *words], env=environ, capture_output=True, text=True, timeout=60 * EXAMPLES
    )


def readable_output(run: subprocess.CompletedProcess[str]) -> str:
    """The output with short lines: some addresses have thousands of letters."""
    return "\n".join(line[:300] for line in (run.stdout + run.stderr).splitlines())
