"""Spark's settings for a session: our defaults for a laptop or a cluster, overridden by those of the caller."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from lastword.core.errors import BadInput

LOOPBACK = "127.0.0.1"

_LOCAL = {
    # The driver on a laptop listens on this machine only.
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    # Enough for the few cores of a laptop; adaptive execution makes them fewer when there is little.
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.memory": "2g",
    # Between Java and Python's workers; over TCP a small answer waits for 40 ms until the one before it is confirmed.
    "spark.python.unix.domain.socket.enabled": "true",
}
# Its workers start with all modules loaded.
_DAEMON = "lastword.spark_daemon"
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A task that runs out of stack or memory fails, and does not end the process.
    "spark.executor.killOnFatalError.depth": "0",
    # Spark's progress bar would mix with the output of a command.
    "spark.ui.showConsoleProgress": "false",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# A standalone master may be several (host:port,host:port), and a test cluster is local-cluster[workers,cores,MB].
_MASTER = re.compile(r"local|local\[(\*|\d+)( *, *\d+)?\]|local-cluster\[\d+,\d+,\d+\]|spark://\S+:\d+|yarn|k8s://\S+")
# Settings that are lists, with their separator: a given value is added to ours.
_LISTS = {"spark.driver.extraClassPath": os.pathsep, "spark.jars": ",", "spark.sql.extensions": ","}


def checked(given: Mapping[str, str]) -> Mapping[str, str]:
    """The settings; BadInput names a setting that can't be Spark's."""
    for name in given:
        if not name.startswith("spark."):
            raise BadInput(f"Spark setting {name}: Spark's settings start with spark.")
    return given


def checked_master(master: str) -> str:
    """The master; BadInput for a kind that Spark does not know: its own error has a hundred lines."""
    if not _MASTER.fullmatch(master):
        raise BadInput(
            f"Spark master {master!r}: expected local, local[2], local[*], spark://host:port, yarn or k8s://https://..."
        )
    return master


def session_settings(
    master: str, jars: tuple[Path, ...], given: Mapping[str, str], *, delta: bool, ui: bool
) -> dict[str, str]:
    """Every setting of a session at a master, except the Java options of its driver."""
    ours = {**_ALWAYS, **(_DELTA if delta else {}), "spark.ui.enabled": str(ui).lower()}
    ours["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    if is_local(master):
        ours.update(_LOCAL)
        # Another Python may lack lastword.
        if "spark.pyspark.python" not in given:
            ours["spark.python.daemon.module"] = _DAEMON
    else:
        # Executors elsewhere have no such folder: they fetch the jars from the driver.
        ours["spark.jars"] = ",".join(map(str, jars))
        if (address := _address_towards(master)) is not None:
            ours["spark.driver.host"] = address
    joined = {
        name: f"{ours[name]}{mark}{given[name]}" for name, mark in _LISTS.items() if name in ours and name in given
    }
    return {**ours, **given, **joined}


def is_local(master: str) -> bool:
    return master.startswith("local")


def _address_towards(master: str) -> str | None:
    """The address of this machine that a standalone cluster can reach; None for another kind, or an unknown host."""
    if not master.startswith("spark://"):
        return None
    host, _, port = master.removeprefix("spark://").partition(",")[0].rpartition(":")
    try:
        # Connecting a datagram socket sends nothing: the kernel only chooses the way.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
            towards.connect((host, int(port)))
            return str(towards.getsockname()[0])
    except (OSError, ValueError):
        return None
