"""The machine that a benchmark ran on: facts that explain a figure, without names of hosts or folders."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from lastword.jvm.jars import broker_jar_lock
from lastword.jvm.java import find_java


def machine_facts(*, local_broker: bool) -> dict[str, str]:
    """Name -> fact, in the order of the page; versions of Kafka and Java only for a broker that lastword started."""
    import confluent_kafka

    facts = {
        "cores": str(_cores()),
        "CPU": _cpu_model(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "librdkafka": f"{confluent_kafka.libversion()[0]} (confluent-kafka {confluent_kafka.__version__})",
    }
    if local_broker:
        facts["Java"] = str(find_java().version)
        facts["Kafka"] = next(jar.version for jar in broker_jar_lock().jars if jar.artifact == "kafka-clients")
    else:
        facts["Kafka"] = "a cluster given with --bootstrap-servers"
    return facts


def _cores() -> int:
    """The cores that this process may use: possibly fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _cpu_model() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    with suppress(OSError, subprocess.SubprocessError):
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    return platform.processor() or "unknown"
