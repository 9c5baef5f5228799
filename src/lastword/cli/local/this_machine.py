"""The local cluster and the parts of `up`, as the verbs of this room start and stop them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from lastword.core.errors import BadInput
from lastword.core.home import default_home, default_jars

if TYPE_CHECKING:
    from lastword.cli.progress_line import ProgressLine
    from lastword.kafka.broker.local_cluster import LocalCluster
    from lastword.kafka.broker.security import Security
    from lastword.up.control import Upkeep


def security(args: argparse.Namespace) -> Security | None:
    """The security that --secure and --tls choose; None without these options."""
    if args.tls and not args.secure:
        raise BadInput("--tls works only with --secure: add --secure")
    return None if not args.secure else "scram-tls" if args.tls else "scram"


def local_cluster(name: str, report: Callable[[str], None], *, owned: bool = False) -> LocalCluster:
    from lastword.kafka.broker.local_cluster import LocalCluster

    home = default_home()
    return LocalCluster.at(home, default_jars(home), name, owned=owned, report=report)


def upkeep(progress: ProgressLine) -> Upkeep:
    """The parts that `up` runs on this machine."""
    from lastword.up.control import Upkeep

    return Upkeep(folder=default_home() / "up", report=progress.line, on_progress=progress.step)
