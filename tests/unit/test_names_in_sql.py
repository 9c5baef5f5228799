from __future__ import annotations

import pytest

from lastword.pipeline.evaluation.names_in_sql import with_name


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("matched", "TRUTH"),
        ("if(matched, 1, 0)", "if(TRUTH, 1, 0)"),
        ("IF(MATCHED, 1, 0)", "IF(TRUTH, 1, 0)"),
        ("`matched` AND credit > 0", "TRUTH AND credit > 0"),
        ("matched_at + unmatched", "matched_at + unmatched"),
        ("order.matched", "order.matched"),
        ("matched (1)", "matched (1)"),
        ("concat('matched', \"matched\")", "concat('matched', \"matched\")"),
        (r"concat('it\'s matched', matched)", r"concat('it\'s matched', TRUTH)"),
        (r"concat(r'\', matched)", r"concat(r'\', TRUTH)"),
        ("1 -- matched\n + matched", "1 -- matched\n + TRUTH"),
        ("/* matched\n */ matched", "/* matched\n */ TRUTH"),
        ("`not matched`", "`not matched`"),
    ],
)
def test_a_name_is_replaced_where_it_is_meant_and_nowhere_else(expression: str, expected: str) -> None:
    assert with_name(expression, "matched", "TRUTH") == expected
