"""Tokens: which are taken from a file, and what each may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from lastword.core.errors import BadInput
from lastword.serve.http.answers import Refused
from lastword.serve.http.tokens import Tokens, tokens_of
from lastword.serve.running import Front

READ, WRITE = "read-0123456789abcdef", "write-0123456789abcdef"


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "tokens.txt"
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return tokens_of(written(tmp_path, f"# who\n\nread {READ}\n  write   {WRITE}  \n"))


@pytest.mark.parametrize(
    ("header", "writing", "code"),
    [
        (f"Bearer {READ}", False, None),
        (f"bearer  {READ}", False, None),
        (f"Bearer {WRITE}", False, None),
        (f"Bearer {WRITE}", True, None),
        (f"Bearer {READ}", True, "forbidden"),
        (f"Bearer {READ}x", False, "unauthorized"),
        (f"Basic {READ}", False, "unauthorized"),
        (READ, False, "unauthorized"),
        ("Bearer", False, "unauthorized"),
        ("", False, "unauthorized"),
        (None, True, "unauthorized"),
    ],
)
def test_a_token_opens_what_it_is_for(tokens: Tokens, header: str | None, writing: bool, code: str | None) -> None:
    if code is None:
        tokens.check(header, writing=writing)
        return
    with pytest.raises(Refused) as refused:
        tokens.check(header, writing=writing)
    assert refused.value.code == code


def test_without_a_token_for_writing_nobody_writes(tmp_path: Path) -> None:
    only_reads = tokens_of(written(tmp_path, f"read {READ}\n"))
    with pytest.raises(Refused, match="this token may only read"):
        only_reads.check(f"Bearer {READ}", writing=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no token"),
        ("# nothing\n", "has no token"),
        (f"read {READ}\nadmin {WRITE}\n", "line 2: write it like"),
        (f"{READ}\n", "line 1: write it like"),
        ("read short\n", "line 1: a token has at least 16 letters"),
        (f"read {READ} {WRITE}\n", "line 1: write it like"),
        ("read ühhhhhhhhhhhhhhhhhhhhhh\n", "line 1: write it like"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_without_showing_what_is_in_it(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(BadInput, match=told) as refused:
        tokens_of(written(tmp_path, text))
    assert "0123456789abcdef" not in str(refused.value)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="can be read by others: run  chmod 600"):
        tokens_of(written(tmp_path, f"read {READ}\n", 0o644))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        tokens_of(tmp_path / "nothing")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "2001:db8::1"])  # noqa: S104
def test_an_address_that_others_can_reach_needs_tokens(tokens: Tokens, host: str) -> None:
    with pytest.raises(BadInput, match="can be reached by others: say who may read and write with --token-file"):
        Front(host=host, port=0)
    assert Front(host=host, port=0, tokens=tokens).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_needs_none(host: str) -> None:
    assert Front(host=host, port=0).host == host


def test_a_name_is_no_address() -> None:
    with pytest.raises(BadInput, match=r"--host example\.org: give an address"):
        Front(host="example.org", port=0)
