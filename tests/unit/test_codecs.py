import json
import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.core.codecs import CODECS, codec_named
from lastword.core.errors import BadInput, DecodeError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(json_values)
def test_json_comes_back_as_it_went_in(value: object) -> None:
    codec = CODECS["json"]
    assert codec.decode(codec.encode(value)) == value


@given(json_values)
def test_json_survives_a_line_to_the_byte_when_it_is_on_one_line(value: object) -> None:
    codec = CODECS["json"]
    raw = json.dumps(value, ensure_ascii=False).encode()
    assert codec.from_json(codec.to_json(raw)) == raw


@given(texts)
def test_text_comes_back_as_it_went_in(text: str) -> None:
    codec = CODECS["string"]
    raw = codec.encode(text)
    assert codec.parse(text) == raw
    if not (len(raw) >= 5 and raw[0] == 0):
        assert codec.decode(raw) == text
        assert codec.from_json(codec.to_json(raw)) == raw


@given(st.binary())
def test_bytes_come_back_as_they_went_in(raw: bytes) -> None:
    codec = CODECS["bytes"]
    assert codec.from_json(codec.to_json(raw)) == codec.decode(codec.encode(raw)) == raw


@given(st.integers(-(2**63), 2**63 - 1))
def test_ints_come_back_as_they_went_in(number: int) -> None:
    codec = CODECS["int"]
    raw = codec.encode(number)
    assert len(raw) == 8
    assert codec.decode(raw) == number
    assert codec.parse(str(number)) == codec.from_json(codec.to_json(raw)) == raw


# Whatever a program may give as a key, fit for the codec or not; texts also as a schema registry's frame begins.
frames = st.builds("\0{}".format, st.text())
things = st.one_of(
    json_values,
    frames,
    st.binary(),
    st.floats(),
    st.integers(-(2**80), 2**80),
    st.tuples(st.integers(), st.text()),
    st.dictionaries(st.integers(), st.text(), max_size=2),
)


@given(st.sampled_from(sorted(CODECS)), things)
def test_a_key_that_is_written_is_read_back_as_it_was(name: str, key: object) -> None:
    codec = CODECS[name]
    try:
        raw = codec.encode_key(key)
    except BadInput:
        return
    read = codec.decode(raw)
    assert read == (list(key) if isinstance(key, tuple) else key)
    assert codec.encode_key(read) == raw


@given(st.sampled_from(sorted(CODECS)), st.text() | frames | json_values.map(json.dumps) | st.integers().map(str))
def test_a_key_that_was_typed_or_came_as_json_can_be_read_back(name: str, text: str) -> None:
    codec = CODECS[name]
    for encode in (partial(codec.parse, text), partial(codec.from_json, json.dumps(text).encode())):
        try:
            raw = codec.checked_key(encode())
        except BadInput:
            continue
        codec.decode(raw)


@pytest.mark.parametrize(
    ("name", "key", "complaint"),
    [
        ("string", "\0abcd", "the string codec can't read this key back (schema registry frame, schema id 1633837924"),
        ("string", "a\ud800", "is not valid Unicode text"),
        ("json", {1: "a"}, "the key \"{1: 'a'}\" comes back from JSON as \"{'1': 'a'}\": give it like that"),
        ("json", [{"a": {2: 0}}], "comes back from JSON as"),
        ("json", "a\ud800", "not a JSON value"),
        ("json", float("nan"), "not a JSON value"),
        ("int", 2**63, "does not fit into 8 bytes"),
        ("int", True, "takes a whole number"),
    ],
)
def test_a_key_that_could_not_be_read_back_is_refused(name: str, key: object, complaint: str) -> None:
    with pytest.raises(BadInput) as refusal:
        CODECS[name].encode_key(key)
    assert complaint in str(refusal.value)


@pytest.mark.parametrize("raw", [b"1e999", b'"\\ud800"', b"[-1e400]", b"[" * 5000 + b"]" * 5000])
def test_json_that_could_not_be_read_back_is_no_key(raw: bytes) -> None:
    with pytest.raises(BadInput, match="the json codec can't read this key back"):
        CODECS["json"].checked_key(CODECS["json"].from_json(raw))


def test_short_text_that_begins_with_the_byte_0_is_a_key() -> None:
    assert CODECS["string"].encode_key("\0abc") == b"\0abc"


def test_an_int_of_four_bytes_is_read_too() -> None:
    assert CODECS["int"].decode((-5).to_bytes(4, "big", signed=True)) == -5


@pytest.mark.parametrize("raw", [b"", b"123", b"123456789"])
def test_other_lengths_are_no_ints(raw: bytes) -> None:
    with pytest.raises(DecodeError, match="instead of 8 or 4"):
        CODECS["int"].decode(raw)


def test_json_null_the_empty_text_and_the_word_null_are_values() -> None:
    assert CODECS["json"].encode(None) == b"null"
    assert CODECS["json"].decode(b"null") is None
    assert CODECS["string"].encode("") == b""
    assert CODECS["string"].encode("null") == b"null"


def test_a_large_number_is_kept_digit_for_digit() -> None:
    raw = b'{"id": 123456789012345678901234567890, "ratio": 1.00}'
    assert CODECS["json"].to_json(raw) == raw


def test_json_over_several_lines_becomes_one_line_with_the_same_numbers() -> None:
    assert CODECS["json"].to_json(b'{\n  "a": 1.00,\r\n  "b": [1e2]\n}') == b'{"a":1.00,"b":[1e2]}'


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": {1, 2}}, object()])
def test_what_json_can_not_carry_is_refused_and_not_changed(value: object) -> None:
    with pytest.raises(BadInput, match="JSON"):
        CODECS["json"].encode(value)


def test_invalid_json_typed_by_a_person_is_refused_with_the_hint() -> None:
    with pytest.raises(BadInput, match="'hello' is not JSON: quote text as '\"hello\"', or use the string codec"):
        CODECS["json"].parse("hello")


@pytest.mark.parametrize("raw", [b"{bad", b"", b'"\xff"', b"\xff", b"{} x", b"NaN"])
def test_bytes_that_are_not_json_are_named_as_such(raw: bytes) -> None:
    with pytest.raises(DecodeError, match="not JSON"):
        CODECS["json"].to_json(raw)
    with pytest.raises(DecodeError, match="not JSON"):
        CODECS["json"].decode(raw)


@pytest.mark.parametrize("codec", ["string", "json"])
def test_a_schema_registry_frame_is_shown_with_its_schema_id(codec: str) -> None:
    with pytest.raises(DecodeError, match="schema id 42, 3 bytes"):
        CODECS[codec].decode(b"\x00\x00\x00\x00\x2aabc")


def test_a_value_nested_deeper_than_python_goes_is_a_value_that_can_not_be_read() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    with pytest.raises(DecodeError, match="not JSON"):
        CODECS["json"].decode(deep)
    with pytest.raises(BadInput, match="not JSON"):
        CODECS["json"].parse(deep.decode())


def test_an_unknown_codec_gets_the_nearest_name() -> None:
    with pytest.raises(BadInput, match="did you mean 'json'"):
        codec_named("jsno")
