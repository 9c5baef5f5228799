"""The rules of the fifteen teams in plain Python: the matches that the pipeline must find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

User = Mapping[str, Any]


def _contains(field: str, *words: str) -> Callable[[User], bool]:
    return lambda user: any(word in user[field] for word in words)


def _is(field: str, *values: str) -> Callable[[User], bool]:
    return lambda user: user[field] in values


def _starts(field: str, prefix: str) -> Callable[[User], bool]:
    return lambda user: bool(user[field].startswith(prefix))


RULES: dict[str, Callable[[User], bool]] = {
    "team-1": _contains("email", "hotmail"),
    "team-2": _starts("credit_card_number", "37"),
    "team-3": _contains("industry", "Bank", "Financ", "Insur", "Invest", "Account", "Capital"),
    "team-4": _contains("industry", "Computer", "Internet", "Semiconductor", "Telecom", "Wireless"),
    "team-5": _contains("industry", "Health", "Hospital", "Medical", "Pharma", "Biotech", "Veterinary"),
    "team-6": _is("profession", "engineer"),
    "team-7": lambda user: user["premium"] and user["credit"] > 10,
    "team-8": lambda user: user["credit"] < -15,
    "team-9": _starts("time_zone", "Asia/"),
    "team-10": _contains("user_agent", "MSIE", "Trident"),
    "team-11": _starts("time_zone", "Europe/"),
    "team-12": _is("field", "IT", "Technology"),
    "team-13": lambda user: "example.org" in user["avatar"] or not user["avatar"].startswith("https://"),
    "team-14": _is("name", "John Doe"),
    "team-15": _is("pack", "free"),
}

# What a match of each rule emits: type and reason.
ACTIONS: dict[str, tuple[str, str]] = {
    "team-1": ("CONTACT_CUSTOMER", "LEGACY_EMAIL_PROVIDER"),
    "team-2": ("CREDIT_CARD_VERIFICATION", "AMEX_CARD"),
    "team-3": ("SALES_LEAD", "FINANCIAL_SECTOR"),
    "team-4": ("ACQUISITION_TARGET", "TECH_COMPANY"),
    "team-5": ("CONTACT_CUSTOMER", "HEALTHCARE_COMPLIANCE"),
    "team-6": ("HIRE_CUSTOMER", "IS_ENGINEER"),
    "team-7": ("CONTACT_CUSTOMER", "VIP_USER"),
    "team-8": ("CONTACT_CUSTOMER", "CRITICAL_DEBT"),
    "team-9": ("CONTACT_CUSTOMER", "APAC_EXPANSION"),
    "team-10": ("CONTACT_CUSTOMER", "LEGACY_BROWSER"),
    "team-11": ("TRIGGER_GDPR_COMPLIANCE", "IN_EUROPE"),
    "team-12": ("HIRE_CUSTOMER", "TECH_PROFESSIONAL"),
    "team-13": ("CONTACT_CUSTOMER", "INVALID_AVATAR"),
    "team-14": ("BAN_CUSTOMER", "SUSPICIOUS_NAME"),
    "team-15": ("CONTACT_CUSTOMER", "UPGRADE_FREE"),
}


def expected_matches(user: User) -> set[str]:
    """The names of the rules that hold for this user."""
    return {name for name, holds in RULES.items() if holds(user)}
