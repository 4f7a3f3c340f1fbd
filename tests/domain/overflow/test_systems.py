"""The sets of the reference systems answer as the systems did, and `recognised` knows no less."""

import json
import os
import re
from pathlib import Path

import pytest

from cutbank.domain.overflow import REFERENCE_TESTS, recognize_overflow

TABLES: dict[str, list[tuple[str | None, bool]]] = json.loads(
    Path(__file__).with_name("systems.json").read_text(encoding="utf-8")
)
ANSWERS = [(system, *row) for system, rows in TABLES.items() for row in rows]
NO_BODY = re.compile(r"\(no body\)", re.IGNORECASE)


def test_a_set_takes_what_its_system_takes() -> None:
    assert [
        (system, message, REFERENCE_TESTS[system](message)) for system, message, _ in ANSWERS
    ] == ANSWERS


def test_a_set_takes_what_the_shared_tables_say() -> None:
    folder = os.environ.get("CUTBANK_VECTORS")
    if not folder:
        pytest.skip("CUTBANK_VECTORS is not set: it names the folder of the original answers")
    tables = [
        ("klaude", "klaude_tables.json"),
        ("klaude", "klaude_first_tables.json"),
        ("pi", "pi_mono_tables.json"),
    ]
    for system, file in tables:
        table = json.loads(Path(folder, file).read_text(encoding="utf-8"))["overflow"]

        assert table
        assert not [
            row for row in table if REFERENCE_TESTS[system](row["message"]) is not row["overflow"]
        ]


def test_a_set_keeps_to_the_letter_of_its_system() -> None:
    rows: list[tuple[str, str | None, bool]] = [
        ("kdcube", "Error: CONTEXT_LENGTH is too large", True),
        ("kdcube", "max tokens must be below 4096", True),
        ("kdcube", "input too long", True),
        ("kdcube", "prompt is too long: 9 tokens > 8 maximum", False),
        ("kdcube", "", False),
        ("tunacode", "Context_Length_Exceeded", True),
        ("tunacode", "This endpoint's MAXIMUM CONTEXT LENGTH is 8 tokens", True),
        ("tunacode", "context length exceeded", False),
        ("tunacode", None, False),
        ("klaude", "Input is too long for requested model", False),
        ("klaude@head", "Input is too long for requested model", True),
        ("klaude@head", "429 (no body)", True),
        ("pi", "input token count 5\u2028exceeds the maximum", False),
        ("klaude", "input token count 5\u2028exceeds the maximum", True),
        ("pi", "maximum prompt length is \u0663", False),
        ("klaude", "maximum prompt length is \u0663", True),
        ("pi", "400\ufeff(no body)", True),
        ("klaude", "400\ufeff(no body)", False),
    ]

    assert [
        (system, message, REFERENCE_TESTS[system](message)) for system, message, _ in rows
    ] == rows


def test_what_any_system_takes_is_recognised_unless_it_has_no_words() -> None:
    taken = {message for _, message, takes in ANSWERS if takes and message}

    missed = {message for message in taken if recognize_overflow(message) is None}

    assert missed == {message for message in taken if NO_BODY.search(message)}


def test_what_no_system_takes_is_recognised_only_where_providers_say_it_today() -> None:
    taken = {message for _, message, takes in ANSWERS if takes}
    left = {message for _, message, _ in ANSWERS} - taken

    assert {message for message in left if recognize_overflow(message)} == {
        "input token count 5\nexceeds the maximum",  # a terminal breaks lines anywhere
        "maximum context length",
        "maximum context length is many tokens",
    }
