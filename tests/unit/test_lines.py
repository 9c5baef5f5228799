import base64
import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lastword.core.codecs import CODECS, Codec
from lastword.core.errors import BadLine
from lastword.core.record import Headers, Record
from lastword.core.row_json import Write, lines_of, row_json, write_of_json_line, write_of_kv_line
from support.generated_headers import headers

STRING, JSON = CODECS["string"], CODECS["json"]


@given(
    key=st.binary(min_size=1),
    value=st.none() | st.binary(),
    headers=headers,
    codecs=st.tuples(st.sampled_from(sorted(CODECS)), st.sampled_from(sorted(CODECS))),
    placed=st.booleans(),
)
def test_whatever_the_bytes_a_dumped_row_is_loaded_back_to_the_byte(
    key: bytes,
    value: bytes | None,
    headers: Headers,
    codecs: tuple[str, str],
    placed: bool,
) -> None:
    # An int of four bytes is read, and written as eight.
    assume(not (codecs[0] == "int" and len(key) == 4))
    assume(not (codecs[1] == "int" and value is not None and len(value) == 4))
    key_codec, value_codec = CODECS[codecs[0]], CODECS[codecs[1]]
    line = row_json(Record(key, value, 1, 2, 3, headers), key_codec, value_codec, placed=placed)
    assert b"\n" not in line
    back = write_of_json_line(line, 1, key_codec, value_codec)
    assert _same(back.key, key, codecs[0])
    assert _same(back.value, value, codecs[1])
    assert back.headers == headers


def _same(back: bytes | None, original: bytes | None, codec: str) -> bool:
    if codec != "json" or back is None or original is None:
        return back == original
    # JSON keeps its tokens; blank space around and line ends inside may go.
    return b"".join(back.split()) == b"".join(original.split())


def test_a_tombstone_and_json_null_are_different_lines() -> None:
    assert row_json(Record(b"a", None, 0, 0, 0), STRING, JSON, placed=False) == b'{"key":"a","tombstone":true}'
    assert row_json(Record(b"a", b"null", 0, 0, 0), STRING, JSON, placed=False) == b'{"key":"a","value":null}'
    assert write_of_json_line(b'{"key":"a","tombstone":true}', 1, STRING, JSON) == Write(b"a", None)
    assert write_of_json_line(b'{"key":"a","value":null}', 1, STRING, JSON) == Write(b"a", b"null")


def test_a_placed_row_tells_partition_offset_timestamp_and_headers() -> None:
    record = Record(b"a", b"1", 2, 17, 1700000000000, (("trace", b"x"), ("raw", b"\xff"), ("none", None)))
    assert row_json(record, STRING, JSON, placed=True) == (
        b'{"key":"a","value":1,"partition":2,"offset":17,"timestamp":1700000000000,'
        b'"headers":[["trace","x"],["raw",{"base64":"/w=="}],["none",null]]}'
    )


def test_bytes_that_are_not_json_travel_as_base64_with_the_reason() -> None:
    line = row_json(Record(b"a", b"{bad", 0, 0, 0), STRING, JSON, placed=False)
    assert line.startswith(b'{"key":"a","value_base64":"e2JhZA==","decode_error":"not JSON')
    assert write_of_json_line(line, 1, STRING, JSON).value == b"{bad"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"key": "a"}', 'has no "value"'),
        (b'{"value": 1}', 'has no "key"'),
        (b'{"key": "a", "vlaue": 1}', "vlaue"),
        (b'{"key": "a", "value": 1, "tombstone": true}', "both"),
        (b'{"key": "a", "value": oops}', "malformed"),
        (b'{"key": 5, "value": 1}', "the string codec takes text"),
        (b'["a", 1]', "Expected `object`"),
        (b'{"key": "a", "value_base64": "*"}', "not base64"),
        (b'{"key": "\xff", "value": 1}', "not UTF-8"),
        (b'{"key": "a", "value": "\xff"}', "not UTF-8"),
        (b'{"key": "", "value": 1}', "the key is empty"),
        (b'{"key": "a", "key_base64": "YQ==", "value": 1}', 'both "key" and "key_base64"'),
        (b'{"key": "a", "value": ' + b"[" * 20000 + b"]" * 20000 + b"}", "ecursion"),
    ],
)
def test_a_bad_json_line_is_refused_with_its_number_and_the_reason(line: bytes, reason: str) -> None:
    with pytest.raises(BadLine, match="line 7: ") as refusal:
        write_of_json_line(line, 7, STRING, JSON)
    assert reason in str(refusal.value)


def test_a_kv_line_is_split_at_the_first_separator() -> None:
    assert write_of_kv_line(b'a:{"b":1}', 1, STRING, JSON, separator=":", null_marker=None) == Write(b"a", b'{"b":1}')
    assert write_of_kv_line(b"a=>x:y", 1, STRING, STRING, separator="=>", null_marker=None) == Write(b"a", b"x:y")


def test_a_kv_tombstone_needs_a_null_marker() -> None:
    assert write_of_kv_line(b"a:NULL", 1, STRING, STRING, separator=":", null_marker="NULL") == Write(b"a", None)
    assert write_of_kv_line(b"a:NULL", 1, STRING, STRING, separator=":", null_marker=None) == Write(b"a", b"NULL")
    assert write_of_kv_line(b"a:NULLABLE", 1, STRING, STRING, separator=":", null_marker="NULL").value == b"NULLABLE"
    assert write_of_kv_line(b"a:", 1, STRING, STRING, separator=":", null_marker=None) == Write(b"a", b"")


@pytest.mark.parametrize(
    ("line", "reason"),
    [(b":1", "the key is empty"), (b"no separator", "no ':'"), (b"a:oops", "not JSON"), (b"\xff:1", "UTF-8")],
)
def test_a_bad_kv_line_is_refused_with_its_number_and_the_reason(line: bytes, reason: str) -> None:
    with pytest.raises(BadLine, match="line 3: ") as refusal:
        write_of_kv_line(line, 3, STRING, JSON, separator=":", null_marker=None)
    assert reason in str(refusal.value)


def test_lines_come_with_their_ends_and_the_last_one_needs_none() -> None:
    assert list(lines_of(io.BytesIO(b"a:1\n\nb:2"))) == [b"a:1\n", b"\n", b"b:2"]


def test_a_line_that_is_too_long_is_named_and_not_read_to_its_end() -> None:
    file = io.BytesIO(b"a:1\n" + b"x" * 1000)
    lines = lines_of(file, most_bytes=10)
    assert next(lines) == b"a:1\n"
    with pytest.raises(BadLine, match="line 2: longer than 10 bytes: a row is one line"):
        next(lines)
    assert file.tell() < 20
    assert list(lines_of(io.BytesIO(b"123456789\n"), most_bytes=10)) == [b"123456789\n"]


@pytest.mark.parametrize(
    ("line", "codec"),
    [
        (rb'{"key":"\u0000abcd","value":1}', STRING),
        (b'{"key":[-1e400],"value":1}', JSON),
        (b'{"key":1e999,"value":1,"headers":[]}', JSON),
    ],
)
def test_a_key_that_its_codec_cannot_read_back_is_refused_in_a_line(line: bytes, codec: Codec) -> None:
    with pytest.raises(BadLine, match=r"^line 7: the (string|json) codec can't read this key back"):
        write_of_json_line(line, 7, codec, JSON)


def test_such_a_key_can_be_deleted_and_given_as_base64() -> None:
    # A dump writes them, and a load restores what a dump wrote.
    raw, encoded = b"\0abcd", base64.b64encode(b"\0abcd")
    assert write_of_json_line(rb'{"key":"\u0000abcd","tombstone":true}', 1, STRING, JSON) == Write(raw, None)
    assert write_of_json_line(b'{"key_base64":"%b","value":1}' % encoded, 1, STRING, JSON) == Write(raw, b"1")
    assert write_of_kv_line(raw + b":NULL", 1, STRING, JSON, separator=":", null_marker="NULL") == Write(raw, None)
    with pytest.raises(BadLine, match=r"^line 3: the string codec can't read this key back"):
        write_of_kv_line(raw + b":1", 3, STRING, JSON, separator=":", null_marker=None)
