"""Secrets are replaced wherever they stand, and nothing else is."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from planted import KEY_LINES, MADE_UP, SECRETS, in_words, planted, some

from cutbank.adapters.transcripts.formats.json_lines import parse_line
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.redaction.redactor import Redactor
from cutbank.adapters.transcripts.redaction.secret_kinds import list_secret_kinds

KEY = SECRETS["GitHub Token"]


@pytest.fixture
def redactor() -> Redactor:
    return Redactor("a.jsonl")


def test_there_is_an_example_of_every_kind() -> None:
    made_up = {kind for kind, _, _ in MADE_UP}

    assert {kind.name for kind in list_secret_kinds()} - made_up - SECRETS.keys() == {
        "Artifactory Credentials"
    }


def test_every_format_is_found_whole_and_told_by_its_kind() -> None:
    missed: list[str] = []
    for kind, secret, words in MADE_UP:
        told = Redactor("a.jsonl")(1, {"text": f"use {words.format(secret)} now"})["text"]
        if told != f"use {words.format(f'[redacted: {kind} 1]')} now":
            missed.append(f"{kind}: {told}")

    assert missed == []


def test_a_secret_is_found_by_the_name_of_its_field(redactor: Redactor) -> None:
    secret = "k" * 39 + "Z"
    for name, value, redacted in (
        ("x-api-key", some(32), "[redacted: API Key Header 1]"),
        ("api-key", "process.env.AZURE_OPENAI_KEY_2", "process.env.AZURE_OPENAI_KEY_2"),
        ("aws_secret_access_key", secret, "[redacted: AWS Secret Key 1]"),
        ("other", secret, secret),
    ):
        assert redactor(1, {name: value}) == {name: redacted}


def test_each_kind_is_found_in_every_place_and_told_by_its_name() -> None:
    entry = {"message": {"content": "two words", "arguments": '{"command": "ls -l"}'}}
    for kind, secret in SECRETS.items():
        redactor = Redactor("a.jsonl")

        told = redactor(7, {"text": in_words(kind)})

        assert secret not in json.dumps(told)
        assert f"[redacted: {kind} 1]" in told["text"]
        assert redactor.found == {kind: ["a.jsonl:7"]}

        told = redactor(1, planted(entry, in_words(kind)))

        said = json.dumps(told).replace("\\", "")
        assert not [part for part in secret.split("\n") if "PRIVATE" not in part and part in said]
        assert json.loads(told["message"]["arguments"])["command"].startswith("ls -l")


def test_what_names_itself_is_found() -> None:
    for text, kind in (
        ("AWS_SECRET_ACCESS_KEY=" + "k" * 39 + "Z", "AWS Secret Key"),
        ('"SecretAccessKey": "' + "k" * 39 + 'Z"', "AWS Secret Key"),
        (r"{\"secret_access_key\": \"" + "k" * 39 + r"Z\"", "AWS Secret Key"),
        ("-H 'Authorization: Bearer " + "k4" * 12 + "'", "Authorization Header"),
        ("password=AKC" + "p4" * 20 + " ", "Artifactory Credentials"),
    ):
        redactor = Redactor("a.jsonl")
        redactor(1, {"text": text})

        assert list(redactor.found) == [kind], text


def test_the_same_secret_has_the_same_mark_and_another_another(redactor: Redactor) -> None:
    other = KEY[:-1] + "0"

    told = redactor(1, [f"{KEY} {other}", f"{other}"])

    assert told == [
        "[redacted: GitHub Token 1] [redacted: GitHub Token 2]",
        "[redacted: GitHub Token 2]",
    ]


def test_what_holds_no_secret_is_the_same_object(redactor: Redactor) -> None:
    value: Any = {"a": ["b", {"c": '{"d": 1}'}], "e": 2, "f": None}

    assert redactor(1, value) is value
    assert redactor.found == {}


def test_a_private_key_goes_with_all_its_lines(redactor: Redactor) -> None:
    key = SECRETS["Private Key"]
    numbered = "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(key.split("\n")))
    cut_off = key[:300]
    for written in (key, key.replace("\n", "\\n"), key.replace("\n", "\r\n"), numbered, cut_off):
        told = redactor(1, {"text": f"cat id_rsa\n{written}\n\nThat was it."})

        assert KEY_LINES[:30] not in told["text"]
        assert told["text"].startswith("cat id_rsa\n")
        assert told["text"].endswith("That was it.")


def test_what_is_no_secret_stays(redactor: Redactor) -> None:
    harmless: list[dict[str, str]] = [
        {"id": "toolu_01" + "aB3" * 8, "uuid": "5a3c1f0e-0000-4000-8000-000000000001"},
        {"signature": b64encode(bytes(range(256))).decode() + "AKIA0123456789ABCDEF"},
        {"encrypted_content": "gAAAA" + "sk-ant-api03-" + "k4" * 40},
        {"data": "A" * 400 + "AKIA0123456789ABCDEF" + "A" * 400},
        {"image_url": "data:image/png;base64,AKIA0123456789ABCDEF" + "A" * 400},
        {"hash": "3f9a1c7e5b2d8f4a6c1e9b7d3f5a2c8e", "commit": "3f9a1c7e5b2d8f4a6c1e" * 2},
        {"text": "postgres://user:password@localhost and https://$USER:$TOKEN@host and //a:<b>@c"},
        {"text": "AKIAIOSFODNN7EXAMPLE, sk-your-key, ghp_xxxx, npm ci, PRIVATE KEY"},
        {"text": "word" + "AKIA0123456789ABCDEF"},
        {"text": "git@github.com:river/bank.git http://host:8080/a@b mailto://x:y"},
    ]

    assert [kept for kept in harmless if redactor(1, kept) is not kept] == []


def test_a_place_is_named_by_file_and_line_and_counted_once(redactor: Redactor) -> None:
    for line in (0, 1, 1, 2):
        redactor(line, {"text": KEY})
    redactor(5, f"one\ntwo {KEY}\nthree")
    redactor(1, {"text": KEY}, "events/1.json")

    places = ["a.jsonl:1", "a.jsonl:2", "a.jsonl:6", "a.jsonl/events/1.json:1"]
    assert redactor.found == {"GitHub Token": places}


def test_a_secret_in_the_files_own_name_is_not_told() -> None:
    assert Redactor(f"/srv/{KEY}.jsonl").path == "/srv/[redacted: GitHub Token 1].jsonl"


def test_what_is_nested_too_deeply_to_be_searched_is_not_read(tmp_path: Path) -> None:
    source = TranscriptSource(tmp_path, redact=Redactor("a"))
    line = parse_line(b'{"a":' * 900 + json.dumps(KEY).encode() + b"}" * 900)

    told = source.redact_line(line)

    assert told.problem == "nested too deeply to look for secrets in"
    assert KEY.encode() not in told.raw


def test_a_line_keeps_its_name_without_its_secrets(tmp_path: Path) -> None:
    source = TranscriptSource(tmp_path, redact=Redactor("a"))
    line = parse_line(json.dumps({"text": KEY}).encode())

    told = source.redact_line(line)

    assert told.digest == line.digest
    assert KEY not in told.text


def test_no_text_takes_longer_than_it_is_long(redactor: Redactor) -> None:
    """Where a pattern looked again and again, one of these would take minutes."""
    for text in (
        "eyJ" * 100_000,
        "://a:" * 100_000,
        "-----BEGIN RSA PRIVATE KEY-----" * 300,
        "sk-" * 100_000,
        "1" * 300_000,
        "xoxb-" + "1-" * 200_000,
        "Authorization: " * 30_000,
        "[" * 100_000,
    ):
        redactor(1, {"text": text})
