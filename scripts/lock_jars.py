"""Makes src/lastword/kafka/broker.lock anew: resolves Kafka's packages and writes down every jar with its sha256.

    PYTHONPATH=src python scripts/lock_jars.py

Run it when a version below changes, and commit the lock. It takes about a minute: Ivy reads every package's POM.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from lastword.core.errors import LastwordError
from lastword.kafka.ivy import fetch_module
from lastword.kafka.jars import Jar
from lastword.kafka.java import find_java

LOCK = Path(__file__).parent.parent / "src" / "lastword" / "kafka" / "broker.lock"

KAFKA = "4.3.0"
LOG4J = "2.25.4"  # the version of log4j-core that Kafka brings; checked below
DIRECT = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    ("org.apache.kafka", "kafka-tools", KAFKA),
    # Kafka's own distribution adds this one at packaging time; without it the broker writes no log.
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J),
    ("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1"),
)
# kafka-tools brings Kafka Connect along, and Connect a web server: nearly half of all jars, for no tool of ours.
NOT_NEEDED = (
    (r"org\.apache\.kafka", "connect-.*"),
    (r"org\.eclipse\.jetty.*", ".*"),
    (r"org\.glassfish\..*", ".*"),
    (r"com\.fasterxml\.jackson\.(jakarta\.rs|module)", ".*"),
    (r"jakarta\..*", ".*"),
)
HEADER = """\
# The jars of the local broker, one a line: group:artifact:version sha256 size
# Made by scripts/lock_jars.py: don't edit, run it again.
"""


def main() -> int:
    try:
        with tempfile.TemporaryDirectory(prefix="lock-jars-") as folder:
            jars = resolve(Path(folder))
    except LastwordError as error:
        print(f"lock_jars: {error}", file=sys.stderr)
        return error.exit_code
    LOCK.write_text(HEADER + "".join(f"{jar.line}\n" for jar in jars), encoding="utf-8")
    print(f"{LOCK}: {len(jars)} jars, {sum(jar.size for jar in jars) / 1e6:.1f} MB")
    return 0


def resolve(folder: Path) -> tuple[Jar, ...]:
    """Every jar of the graph, sorted by its name."""
    outcome = fetch_module(ivy_module(), folder, find_java(), transitively=True)
    if not outcome.succeeded:
        raise LastwordError(f"can't resolve {', '.join(outcome.unresolved) or 'the graph'}: {outcome.reason}")
    jars = tuple(sorted(locked(path) for path in (folder / "jars").iterdir()))
    logging = {jar.version for jar in jars if jar.group == "org.apache.logging.log4j"}
    if logging != {LOG4J}:
        raise LastwordError(f"log4j comes in the versions {', '.join(sorted(logging))}: set LOG4J to Kafka's own")
    return jars


def ivy_module() -> str:
    dependencies = [
        f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="default->default"/>'
        for group, artifact, version in DIRECT
    ]
    exclusions = [f'<exclude org="{group}" module="{artifact}" matcher="regexp"/>' for group, artifact in NOT_NEEDED]
    return f"""\
<ivy-module version="2.0">
  <info organisation="lastword" module="broker"/>
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
    sys.exit(main())
