"""However a program ends, no JVM is left."""

from __future__ import annotations

import signal

from support.processes import alive
from support.programs import SESSION, run, start

JOB_WITHOUT_END = """
print(jvm, flush=True)
spark.range(10**13).selectExpr("sum(xxhash64(id))").collect()
"""


def test_a_program_that_says_nothing_of_stopping_leaves_no_jvm() -> None:
    out = run(SESSION + "print(spark.range(10).count(), jvm)", {})

    count, jvm = out.split()
    assert count == "10"
    assert not alive(int(jvm))


def test_after_stop_the_jvm_is_gone_and_another_session_can_be_made() -> None:
    out = run(
        SESSION
        + """
import os
stop(spark)
try:
    os.kill(jvm, 0)
except ProcessLookupError:
    print("gone")
spark = session(Connection(bootstrap_servers="127.0.0.1:2"), master="local[1]")
print(spark.range(10).count())
""",
        {},
    )

    assert out.split() == ["gone", "10"]


def test_ctrl_c_ends_a_running_job_its_program_and_its_jvm() -> None:
    program = start(SESSION + JOB_WITHOUT_END, {})
    try:
        assert program.stdout is not None
        jvm = int(program.stdout.readline())
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=60)
    finally:
        program.kill()

    assert program.returncode == -signal.SIGINT
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert "ERROR" not in err
    assert not alive(jvm)
