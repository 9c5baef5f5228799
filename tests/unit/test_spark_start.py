"""Why Spark did not start, in one line."""

from __future__ import annotations

import pytest

from lastword.core.errors import BadInput
from lastword.spark.session.jvm_errors import StartRefused, reason_of
from lastword.spark.session.settings import checked_master

EXITED = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


@pytest.mark.parametrize(
    ("failure", "said", "reason"),
    [
        (EXITED, ["Invalid maximum heap size: -Xmx2p\n", "Error: no JVM\n"], "Invalid maximum heap size: -Xmx2p"),
        (EXITED, ['Exception in thread "main" org.a.SparkException: No such thing\n', "\tat x\n"], "No such thing"),
        (EXITED, [], str(EXITED)),
        (StartRefused("org.a.SparkException: Invalid master URL: x\n\tat org"), ["log\n"], "Invalid master URL: x"),
        (
            StartRefused("java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"),
            ["2026-01-01 10:00:00 ERROR Backend: All masters are unresponsive!\n"],
            "All masters are unresponsive!",
        ),
        (StartRefused(""), [], "StartRefused"),
    ],
)
def test_the_reason_is_the_line_that_says_what_is_wrong(failure: Exception, said: list[str], reason: str) -> None:
    assert reason_of(failure, said) == reason


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[2,3]",
        "local[*, 3]",
        "local-cluster[2,1,1024]",
        "spark://host:7077",
        "spark://a:7077,b:7077",
        "spark://[::1]:7077",
        "yarn",
        "k8s://https://host:6443",
    ],
)
def test_every_kind_of_master_is_taken(master: str) -> None:
    assert checked_master(master) == master


@pytest.mark.parametrize("master", ["loca[2]", "local[x]", "local[2", "localhost", "spark://", "host:7077", ""])
def test_what_is_no_master_is_refused_with_what_is_expected(master: str) -> None:
    with pytest.raises(BadInput, match=r"expected local, local\[2\], .*spark://host:port, yarn or k8s://"):
        checked_master(master)
