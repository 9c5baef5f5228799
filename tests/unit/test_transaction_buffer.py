from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow
import pytest

from lastword.kafka.client.transactions import OutgoingRecord
from lastword.pipeline.evaluation.verdicts import SourceField
from lastword.pipeline.running.progress import PartitionProgress
from lastword.pipeline.running.transaction_buffer import TransactionBuffer
from support.evaluated_rows import OUTPUT_TOPICS, batch, unreadable, valid

BEFORE = PartitionProgress(next_offset=3, source_id="id", generation=2, owner="me")


def doubtful(row: dict[str, Any], value: bytes) -> dict[str, Any]:
    return {**row, "doubt": True, "key": b"k", "value": value, "unread": ""}


def outgoing(buffer: TransactionBuffer) -> list[OutgoingRecord]:
    return [OutgoingRecord(*fields) for fields in buffer.outgoing()]


def test_matches_are_written_with_their_source_and_rule_and_counted() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(batch(valid(3, (0, b"a"), (1, b"b"), increments=(5, 7)), valid(4), valid(6, (1, b"c"))))
    buffer.add(batch(valid(7, (1, b"d"), increments=(2**62, 0)), valid(9, increments=(2**62, 1))))

    assert outgoing(buffer) == [
        OutgoingRecord("actions", b"a", None, [("source", b"users/1/3"), ("rule", b"one")]),
        OutgoingRecord("others", b"b", None, [("source", b"users/1/3"), ("rule", b"two")]),
        OutgoingRecord("others", b"c", None, [("source", b"users/1/6"), ("rule", b"two")]),
        OutgoingRecord("others", b"d", None, [("source", b"users/1/7"), ("rule", b"two")]),
    ]
    after = buffer.after(BEFORE)
    assert (after.next_offset, after.valid, after.rejected, after.generation) == (10, 5, 0, 2)
    assert after.counters == {
        "stats": {"one": {"seen": 5, "flagged": 1}, "two": {"seen": 5, "flagged": 3}},
        "sums": {"one": {"amount": 5 + 2**63}, "two": {"amount": 8}},
    }


def test_counters_go_on_and_those_of_rules_that_are_gone_stay() -> None:
    counters = {"stats": {"one": {"seen": 10}, "gone": {"seen": 3}}}
    before = PartitionProgress(
        next_offset=3, source_id="id", generation=2, owner="me", valid=10, rejected=1, counters=counters
    )
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(batch(valid(3), unreadable(4, None)))

    after = buffer.after(before)

    assert (after.valid, after.rejected) == (11, 2)
    assert after.counters["stats"]["one"] == {"seen": 11, "flagged": 0}
    assert after.counters["stats"]["gone"] == {"seen": 3}
    assert before.counters == counters == {"stats": {"one": {"seen": 10}, "gone": {"seen": 3}}}


def test_a_rejected_record_keeps_its_key_and_value_and_says_why() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(batch(valid(3), unreadable(4, b"{"), unreadable(5, None)))

    assert outgoing(buffer) == [
        OutgoingRecord("app-rejects", b"{", b"k", [("source", b"users/1/4"), ("reason", b"its value is not JSON")]),
        OutgoingRecord("app-rejects", None, b"k", [("source", b"users/1/5"), ("reason", b"it has no value")]),
    ]


def test_of_records_in_doubt_those_that_are_wrong_are_rejected_and_emit_nothing() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    right = doubtful(valid(4, (0, b"a"), increments=(1, 2)), b'{"name": "}"}')
    wrong = doubtful(valid(5, (0, b"b"), increments=(3, 4)), b'{"name": 5}')
    buffer.add(batch(valid(3), right, wrong))

    assert [(record.topic, record.value) for record in outgoing(buffer)] == [
        ("app-rejects", b'{"name": 5}'),
        ("actions", b"a"),
    ]
    after = buffer.after(BEFORE)
    assert (after.valid, after.rejected, after.counters["sums"]) == (2, 1, {"one": {"amount": 1}, "two": {"amount": 2}})


@pytest.mark.parametrize(("key", "value"), [(b"k", b"x" * 5000), (b"k" * 5000, b"x"), (b"k" * 5000, None)])
def test_a_rejected_record_is_cut_to_what_its_topic_takes(key: bytes, value: bytes | None) -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(batch({**unreadable(4, value), "key": key}))

    (record,) = outgoing(buffer)
    headers = sum(len(name) + len(text) for name, text in record.headers or ())
    size = len(record.key or b"") + len(record.value or b"") + headers
    assert 1700 < size < 2000
    assert key.startswith(record.key or b"-")
    assert (record.value is None) == (value is None)


def test_a_long_reason_is_cut() -> None:
    names = [f"field-{number}" for number in range(500)]
    fields = tuple(SourceField(name=name, kind="INT", is_required=True, is_text=False) for name in names)
    buffer = TransactionBuffer(replace(OUTPUT_TOPICS, fields=fields), 1)
    buffer.add(batch(unreadable(4, b"{}")))

    reason = dict(outgoing(buffer)[0].headers or ())["reason"]
    assert reason.startswith(b"missing or null: field-0, field-1, ")
    assert len(reason) == 500


def test_a_record_that_its_topic_would_not_take_is_rejected_and_the_match_counts() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(batch(valid(3, (0, b"x" * 3000))))

    (record,) = outgoing(buffer)
    assert record.topic == "app-rejects"
    assert len(record.value or b"") < 2000
    reason = dict(record.headers or ())["reason"].decode()
    assert re.fullmatch(r"the record for actions has 32\d\d bytes, and the topic takes 3000", reason)
    assert buffer.after(BEFORE).counters["stats"]["one"]["flagged"] == 1


def test_rows_that_were_filtered_out_leave_the_others_as_they_are() -> None:
    whole = batch(valid(3, (0, b"a")), valid(4, (1, b"b")), valid(5, (0, b"c")))
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(whole.filter(pyarrow.array([False, True, True])))

    assert [(record.value, dict(record.headers or ())["source"]) for record in outgoing(buffer)] == [
        (b"b", b"users/1/4"),
        (b"c", b"users/1/5"),
    ]


def test_records_of_two_rules_come_in_the_order_of_the_source_with_their_keys() -> None:
    buffer = TransactionBuffer(replace(OUTPUT_TOPICS, rules=(("one", "others"), ("two", "others"))), 1)
    keyed = {**valid(3, (1, b"first")), "key_1": b"k"}
    buffer.add(batch(keyed, valid(4, (0, b"second"), (1, b"third")), valid(5, (0, b"fourth"))))

    assert [(record.key, record.value) for record in outgoing(buffer)] == [
        (b"k", b"first"),
        (None, b"second"),
        (None, b"third"),
        (None, b"fourth"),
    ]


def test_a_record_without_a_key_for_a_compacted_topic_is_rejected_and_the_match_counts() -> None:
    buffer = TransactionBuffer(replace(OUTPUT_TOPICS, keyed=frozenset({"others"})), 1)
    keyed = {**valid(3, (1, b"first")), "key_1": b"k"}
    buffer.add(batch(keyed, valid(4, (0, b"second"), (1, b"third"))))

    assert outgoing(buffer) == [
        OutgoingRecord(
            "app-rejects",
            b"third",
            None,
            [
                ("source", b"users/1/4"),
                ("rule", b"two"),
                ("reason", b"the record for others has no key, and the topic is compacted"),
            ],
        ),
        OutgoingRecord("others", b"first", b"k", [("source", b"users/1/3"), ("rule", b"two")]),
        OutgoingRecord("actions", b"second", None, [("source", b"users/1/4"), ("rule", b"one")]),
    ]
    assert buffer.after(BEFORE).counters["stats"]["two"]["flagged"] == 2


def test_of_records_that_are_many_bytes_together_only_the_large_ones_are_rejected() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(batch(*[valid(offset, (0, b"x" * 900)) for offset in range(5)], valid(5, (0, b"y" * 3000))))

    assert [(record.topic, (record.value or b"")[:1]) for record in outgoing(buffer)] == [
        ("app-rejects", b"y"),
        *[("actions", b"x")] * 5,
    ]
    assert buffer.after(BEFORE).counters["stats"]["one"]["flagged"] == 6


def test_offsets_that_nobody_has_are_passed_at_the_end() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    buffer.add(batch(valid(3)))
    buffer.reach(8)

    assert buffer.after(BEFORE).next_offset == 8


def test_a_record_on_which_an_expression_fails_is_rejected_as_a_whole() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1)
    failed = {**valid(4, (0, b"a"), increments=(5, 7)), "failed": "0,1", "key": b"k", "value": b'{"name": "Ada"}'}
    buffer.add(batch(valid(3, (0, b"b")), failed))

    reason = b"it can't be computed: rule one, when: a; rule one, value"
    assert outgoing(buffer) == [
        OutgoingRecord("app-rejects", b'{"name": "Ada"}', b"k", [("source", b"users/1/4"), ("reason", reason)]),
        OutgoingRecord("actions", b"b", None, [("source", b"users/1/3"), ("rule", b"one")]),
    ]
    after = buffer.after(BEFORE)
    assert (after.next_offset, after.valid, after.rejected) == (5, 1, 1)
    assert after.counters["sums"]["one"] == {"amount": 0}


def test_a_share_with_a_blame_is_rejected_unless_its_record_is_no_valid_one_anyway() -> None:
    buffer = TransactionBuffer(OUTPUT_TOPICS, 1, "it ends a task")
    buffer.add(batch(doubtful(valid(3), b'{"name": "Ada"}'), doubtful(valid(4), b"{")))

    reasons = [dict(each.headers or [])["reason"] for each in outgoing(buffer)]
    assert reasons == [b"it can't be computed: it ends a task", b"its value is not JSON"]
