"""The oracle of the pipeline, against users whose matches are plain to see."""

from __future__ import annotations

import pytest

from support.fifteen_rules import expected_matches

NOBODY = {
    "email": "ada.chen.1@gmail.example",
    "credit_card_number": "4012001000000000",
    "company_name": "Hotmail Computer Bank",
    "company_slogan": "We bank on free engineers",
    "industry": "Railroads",
    "user_name": "hotmail37",
    "avatar": "https://avatars.example.com/u/1.png",
    "name": "Ada Chen",
    "profession": "teacher",
    "field": "Law",
    "premium": True,
    "credit": 10,
    "time_zone": "Africa/Cairo",
    "user_agent": "curl/8.7.1",
    "pack": "small",
}


def test_a_user_whom_no_rule_is_about_matches_none() -> None:
    assert expected_matches(NOBODY) == set()


@pytest.mark.parametrize(
    ("change", "teams"),
    [
        ({"email": "a@hotmail.co.example"}, ["team-1"]),
        ({"email": "a@HOTMAIL.example"}, []),
        ({"credit_card_number": "371440000000000"}, ["team-2"]),
        ({"credit_card_number": "4370000000000000"}, []),
        ({"industry": "Consumer Finance"}, ["team-3"]),
        ({"industry": "Semiconductors"}, ["team-4"]),
        ({"industry": "Health Insurance"}, ["team-3", "team-5"]),
        ({"profession": "engineer"}, ["team-6"]),
        ({"profession": "sound engineer"}, []),
        ({"credit": 11}, ["team-7"]),
        ({"credit": 11, "premium": False}, []),
        ({"credit": -15}, []),
        ({"credit": -16}, ["team-8"]),
        ({"time_zone": "Asia/Tokyo"}, ["team-9"]),
        ({"user_agent": "Mozilla/4.0 (compatible; MSIE 8.0)"}, ["team-10"]),
        ({"user_agent": "Mozilla/5.0 (Trident/7.0)"}, ["team-10"]),
        ({"time_zone": "Europe/Rome"}, ["team-11"]),
        ({"field": "IT"}, ["team-12"]),
        ({"field": "Technology"}, ["team-12"]),
        ({"field": "Information Technology"}, []),
        ({"avatar": "example.org"}, ["team-13"]),
        ({"avatar": "https://example.org/1.png"}, ["team-13"]),
        ({"avatar": "http://avatars.example.com/1.png"}, ["team-13"]),
        ({"name": "John Doe"}, ["team-14"]),
        ({"name": "John Doeson"}, []),
        ({"pack": "free"}, ["team-15"]),
    ],
    ids=str,
)
def test_one_change_brings_in_the_team_whose_rule_it_meets_and_no_other(
    change: dict[str, object], teams: list[str]
) -> None:
    assert expected_matches({**NOBODY, **change}) == set(teams)
