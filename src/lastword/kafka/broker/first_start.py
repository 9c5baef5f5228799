"""Kafka's first start on a machine, before the first cluster: it makes the class archive that brokers map."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lastword.kafka.broker.broker_process import Jvm, broker_archive
from lastword.kafka.broker.local_cluster import LocalCluster

# Its JVM also writes the archive before it ends, and the machine may be busy.
_STOP_S = 120.0


def take_first_broker_start(jvm: Jvm, cache: Path, report: Callable[[str], None]) -> None:
    """Starts a broker once and stops it, unless its class archive exists, or can't be kept."""
    archive = broker_archive(jvm, cache)
    if archive.unfinished is None:
        return
    report("preparing Kafka, once: it then starts in half the time")
    killed: list[str] = []
    try:
        with LocalCluster.fresh(cache, "first-start", report=killed.append) as cluster:
            cluster.jvm_options = archive.options
            cluster.start(port=0)
            # Only lines from here on are about the stop.
            killed.clear()
            cluster.stop(_STOP_S)
    finally:
        archive.finish(whole=not killed and archive.unfinished.exists())
