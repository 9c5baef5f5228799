"""One broker as a process: formatting its data folder, starting it detached or under a warden, asking, stopping."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lastword.core.errors import BrokerFailed
from lastword.kafka import warden
from lastword.kafka.cluster_files import ClusterSpec, NodeFiles
from lastword.kafka.java import Java


@dataclass(frozen=True, kw_only=True)
class Jvm:
    """The Java that runs the brokers, and the jars they are made of."""

    java: Java
    jars: tuple[Path, ...]

    def command(self, main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        classpath = os.pathsep.join(str(jar) for jar in self.jars if "javaagent" not in jar.name)
        return [str(self.java.executable), *options, "-cp", classpath, main_class, *arguments]


def format_data(jvm: Jvm, files: NodeFiles, spec: ClusterSpec) -> None:
    """Makes the data folder a broker of this cluster, with Kafka's own tool."""
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=ERROR"]
    command = jvm.command(
        "kafka.tools.StorageTool",
        *("format", "--cluster-id", spec.cluster_id, "--config", str(files.properties)),
        options=quick,
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BrokerFailed(
            f"formatting {files.data} failed: see the lines below", log_tail=(done.stdout + done.stderr).splitlines()
        )


def broker_command(jvm: Jvm, files: NodeFiles, logging: Path, archive: Path) -> list[str]:
    options = [
        "-Xms128m",
        "-Xmx1g",
        "-XX:+UseSerialGC",
        f"-Dlog4j2.configurationFile={logging}",
        "-Djava.awt.headless=true",
    ]
    if jvm.java.version >= 19:
        # The JVM keeps the classes it loaded in an archive and maps them at the next start: a second faster.
        options += ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off"]
    if jvm.java.version >= 22:
        options.append("--enable-native-access=ALL-UNNAMED")
    return jvm.command("kafka.Kafka", str(files.properties), options=options)


def start_detached(command: list[str], files: NodeFiles) -> None:
    """Starts a broker that outlives this process."""
    warden.spawn(command, **_places(files))


def start_owned(commands: list[tuple[list[str], NodeFiles]], remove: Path | None) -> subprocess.Popen[str]:
    """Starts brokers that end with this process, however it ends; returns their warden."""
    told = {
        "brokers": [{"command": command, **_places(files)} for command, files in commands],
        "remove": str(remove) if remove else None,
    }
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", warden.__file__, json.dumps(told)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    heard = keeper.stdout.readline() if keeper.stdout else ""
    if heard.strip() != "started":
        complaint = heard + keeper.communicate()[0]
        raise BrokerFailed("the brokers could not be started: see the lines below", log_tail=complaint.splitlines())
    return keeper


def is_running(files: NodeFiles) -> bool:
    """Whether a live process holds this broker's folder."""
    try:
        with files.running.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def running_pid(files: NodeFiles) -> int | None:
    """The broker's process id, or None when it does not run."""
    try:
        return int(files.pid.read_text()) if is_running(files) else None
    except (FileNotFoundError, ValueError):
        return None


def signal_broker(files: NodeFiles, number: signal.Signals) -> None:
    pid = running_pid(files)
    if pid is not None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return


def wait_until_ended(files: NodeFiles, timeout_s: float) -> bool:
    give_up_at = time.monotonic() + timeout_s
    while is_running(files):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.02)
    return True


def _places(files: NodeFiles) -> dict[str, str]:
    return {"lock": str(files.running), "pid": str(files.pid), "output": str(files.output)}
