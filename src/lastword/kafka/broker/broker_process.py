"""Brokers as processes: formatting a data folder, starting brokers detached or under a warden, stopping them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lastword.core.durable import write_durably
from lastword.core.errors import BrokerFailed
from lastword.jvm.class_archive import ClassArchive, class_archive
from lastword.jvm.jars import broker_jar_lock
from lastword.jvm.java import COMPILE_LATER, Java
from lastword.jvm.quoting import quoted
from lastword.kafka.broker.broker_log import refused_setting, without_frames
from lastword.kafka.broker.cluster_files import ClusterSpec, NodeFiles
from lastword.processes import warden
from lastword.processes.process_lock import signal_process, wait_until_ended

# The command line of a broker, and where the broker's files are.
BrokerCommand = tuple[list[str], NodeFiles]


@dataclass(frozen=True, kw_only=True)
class Jvm:
    """The Java that runs the brokers, and the jars they are made of."""

    java: Java
    jars: tuple[Path, ...]
    # How it starts: with a class archive.
    options: tuple[str, ...] = ()

    @property
    def class_path(self) -> tuple[Path, ...]:
        return tuple(jar for jar in self.jars if "javaagent" not in jar.name)

    def command(self, main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        class_path = os.pathsep.join(map(str, self.class_path))
        return [str(self.java.executable), *self.options, *options, "-cp", class_path, main_class, *arguments]


def broker_archive(jvm: Jvm, cache: Path) -> ClassArchive:
    """The archive of the broker's classes, for this Java and these jars."""
    return class_archive(jvm.java, cache.absolute(), broker_jar_lock().folder_name, jvm.class_path)


def archive_options(jvm: Jvm, cache: Path) -> tuple[str, ...]:
    """Java's options for a broker that maps its class archive; none while there is no archive."""
    archive = broker_archive(jvm, cache)
    return archive.options if archive.unfinished is None else ()


def format_data(jvm: Jvm, files: NodeFiles, spec: ClusterSpec, secret: Sequence[str], turn: IO[str]) -> None:
    """Makes the data folder a broker of this cluster, with Kafka's own tool; `secret` are arguments for the tool."""
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=ERROR"]
    java, *words = jvm.command(
        "kafka.tools.StorageTool",
        *("format", "--cluster-id", spec.cluster_id, "--config", str(files.properties), *secret),
        options=quick,
    )
    # In a file: everyone on the machine can read a command line.
    arguments = files.format_arguments
    write_durably(arguments, "\n".join(map(quoted, words)).encode())
    try:
        done = subprocess.run(
            [java, f"@{arguments}"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            # The tool holds our turn too: if we are killed, the next command must wait until the tool has ended.
            pass_fds=[turn.fileno()],
            umask=0o077,
        )
    finally:
        arguments.unlink()
    if done.returncode != 0:
        lines = without_frames((done.stdout + done.stderr).splitlines())
        reason = refused_setting(lines) or "see the lines below"
        raise BrokerFailed(f"formatting {files.data} failed: {reason}", log_tail=lines)


def broker_command(jvm: Jvm, files: NodeFiles) -> list[str]:
    options = [
        "-Xms128m",
        "-Xmx1g",
        "-XX:+UseSerialGC",
        *COMPILE_LATER,
        f"-Dlog4j2.configurationFile={files.logging.name}",  # in the broker's folder, where it runs
        "-Djava.awt.headless=true",
    ]
    if jvm.java.version >= 22:
        options.append("--enable-native-access=ALL-UNNAMED")
    return jvm.command("kafka.Kafka", str(files.properties), options=options)


def start_detached(commands: list[BrokerCommand]) -> None:
    """Starts brokers that outlive this process."""
    for command, files in commands:
        warden.spawn(command, detached=True, preexec=None, **_places(files)).wait()


class Warden:
    """The process that ends our brokers when we end, however that happens; it then removes the folder `remove`."""

    def __init__(self, remove: Path | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", warden.__file__, str(os.getpid()), str(remove or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None  # noqa: S101, PT018 - Popen's types don't know our pipes
        self._requests, self._answers = requests, answers

    def start(self, commands: list[BrokerCommand]) -> None:
        """Starts brokers that end with this process."""
        request = json.dumps([{"command": command, **_places(files)} for command, files in commands])
        try:
            self._requests.write(request.encode() + b"\n")
            self._requests.flush()
            answer = self._answers.readline().decode().strip()
        except BrokenPipeError:
            answer = ""
        if answer != "started":
            raise BrokerFailed(f"the brokers could not be started: {answer or 'their warden is gone'}: try again")

    def dismiss(self) -> None:
        """Ends the warden, and with it all of its brokers that still run."""
        for stream in (self._requests, self._answers):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._process.wait()


def stop_brokers(running: Mapping[int, NodeFiles], timeout_s: float, *, report: Callable[[str], None]) -> None:
    """Stops brokers, in order first and by force after `timeout_s`; BrokerFailed for a broker that does not end."""
    for files in running.values():
        signal_process(files, signal.SIGTERM)
    give_up_at = time.monotonic() + timeout_s
    for node_id, files in running.items():
        if wait_until_ended(files, max(0.0, give_up_at - time.monotonic())):
            continue
        report(f"broker {node_id} did not stop in {timeout_s:.0f} s and was killed; its next start recovers")
        signal_process(files, signal.SIGKILL)
        if not wait_until_ended(files, 5):
            raise BrokerFailed(f"broker {node_id} could not be stopped: end the process that holds {files.running}")


def _places(files: NodeFiles) -> dict[str, str]:
    return {"lock": str(files.running), "pid": str(files.pid), "output": str(files.output)}
