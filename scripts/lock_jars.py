"""Makes the jar locks anew: resolves the packages named here and writes down every jar with its sha256.

    PYTHONPATH=src python scripts/lock_jars.py [broker] [benchmark] [spark]

Run it when a version below changes, and commit the locks. It takes about a minute: Ivy reads every package's POM.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lastword.core.errors import LastwordError
from lastword.jvm.ivy import fetch_module
from lastword.jvm.jars import Jar
from lastword.jvm.java import find_java

ROOT = Path(__file__).parent.parent

KAFKA = "4.3.0"
LOG4J = "2.25.4"  # the version of log4j-core that Kafka brings; checked below
SPARK = "4.2.0"  # pyspark's, in pyproject.toml
DELTA = "4.4.0"  # the one built for that Spark
SLF4J = "1.7.36"  # the version of slf4j-api that Kafka brings; checked below
HEADER = """\
# The jars of the {what}, one a line: group:artifact:version sha256 size
# Made by scripts/lock_jars.py: don't edit, run it again.
"""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a lock is resolved from: the direct packages, patterns of those left out, and versions that must agree."""

    what: str
    folder: str
    direct: tuple[tuple[str, str, str], ...]
    not_needed: tuple[tuple[str, str], ...] = ()
    # Group -> the one version in which its jars may come.
    agreeing: tuple[tuple[str, str], ...] = ()
    # Whether what the direct packages need comes along.
    transitively: bool = True


LOCKS = {
    "broker": Wanted(
        what="local broker",
        folder="src/lastword/jvm",
        direct=(
            ("org.apache.kafka", "kafka_2.13", KAFKA),
            ("org.apache.kafka", "kafka-tools", KAFKA),
            # Kafka's own distribution adds this one at packaging time; without it the broker writes no log.
            ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J),
            ("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1"),
        ),
        # kafka-tools brings Kafka Connect along, and Connect a web server: nearly half of all jars, for no tool of
        # ours.
        not_needed=(
            (r"org\.apache\.kafka", "connect-.*"),
            (r"org\.eclipse\.jetty.*", ".*"),
            (r"org\.glassfish\..*", ".*"),
            (r"com\.fasterxml\.jackson\.(jakarta\.rs|module)", ".*"),
            (r"jakarta\..*", ".*"),
        ),
        agreeing=(("org.apache.logging.log4j", LOG4J),),
    ),
    "benchmark": Wanted(
        what="benchmarks' alternatives",
        folder="benchmarks/alternatives",
        direct=(
            ("org.apache.kafka", "kafka-streams", KAFKA),
            # Without a binding Kafka Streams would fail without a word.
            ("org.slf4j", "slf4j-simple", SLF4J),
        ),
        agreeing=(("org.slf4j", SLF4J), ("org.apache.kafka", KAFKA)),
    ),
    # What pyspark does not bring: the Kafka connector and Delta. Everything else that they need lies in pyspark's own
    # folder, in the versions that Spark was built with.
    "spark": Wanted(
        what="Spark session",
        folder="src/lastword/jvm",
        direct=(
            ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK),
            # Its newest release on the public registry; the connector works with it.
            ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
            ("org.apache.kafka", "kafka-clients", "3.9.2"),
            ("org.apache.commons", "commons-pool2", "2.13.1"),
            ("io.delta", "delta-spark_4.2_2.13", DELTA),
            ("io.delta", "delta-storage", DELTA),
        ),
        transitively=False,
    ),
}


def main(names: list[str]) -> int:
    try:
        for name in names or LOCKS:
            lock = ROOT / LOCKS[name].folder / f"{name}.lock"
            with tempfile.TemporaryDirectory(prefix="lock-jars-") as folder:
                jars = resolve(name, LOCKS[name], Path(folder))
            header = HEADER.format(what=LOCKS[name].what)
            lock.write_text(header + "".join(f"{jar.line}\n" for jar in jars), encoding="utf-8")
            print(f"{lock}: {len(jars)} jars, {sum(jar.size for jar in jars) / 1e6:.1f} MB")
    except LastwordError as error:
        print(f"lock_jars: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def resolve(name: str, wanted: Wanted, folder: Path) -> tuple[Jar, ...]:
    """Every jar of the graph, sorted by its name."""
    outcome = fetch_module(ivy_module(name, wanted), folder, find_java(), transitively=wanted.transitively)
    if not outcome.succeeded:
        raise LastwordError(f"can't resolve {', '.join(outcome.unresolved) or 'the graph'}: {outcome.reason}")
    jars = tuple(sorted(locked(path) for path in (folder / "jars").iterdir()))
    for group, version in wanted.agreeing:
        found = {jar.version for jar in jars if jar.group == group}
        if found != {version}:
            raise LastwordError(f"{group} comes in the versions {', '.join(sorted(found))}: set it to Kafka's own")
    return jars


def ivy_module(name: str, wanted: Wanted) -> str:
    dependencies = [
        f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="default->default" '
        f'transitive="{str(wanted.transitively).lower()}"/>'
        for group, artifact, version in wanted.direct
    ]
    exclusions = [
        f'<exclude org="{group}" module="{artifact}" matcher="regexp"/>' for group, artifact in wanted.not_needed
    ]
    return f"""\
<ivy-module version="2.0">
  <info organisation="lastword" module="{name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{"".join(dependencies + exclusions)}</dependencies>
</ivy-module>
"""


def locked(path: Path) -> Jar:
    """The jar as it was fetched, read back from its name."""
    group, artifact, version = path.name.removesuffix(".jar").split("--")
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Jar(group=group, artifact=artifact, version=version, sha256=sha256, size=path.stat().st_size)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
