"""What no block holds is found in the files as they were kept."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk
from hypothesis import given
from hypothesis import strategies as st
from transcripts import import_file, samples

from cutbank import InvalidSettingError, NotFoundError, SessionStore, search_sources
from cutbank.adapters.runtime import kept_sources
from cutbank.adapters.runtime.kept_sources import read_kept_lines

from .conftest import write


@pytest.fixture
def path(folder: Path) -> Path:
    told = Talk()
    told.user("question")
    told.user("and", toolUseResult={"stdout": 'shown: "Grüße"\n' * 2})
    return write(folder, f"{SESSION}.jsonl", told)


@pytest.mark.parametrize("text", ["tooluseresult", 'shown: "Grüße"\nshown', r"\"Gr\u00fc\u00dfe"])
def test_a_text_is_found_in_either_case_and_as_json_writes_it(
    text: str, store: SessionStore, path: Path
) -> None:
    import_file(store, path)

    (hit,) = search_sources(store, text)

    assert (hit.session, hit.file, hit.line) == (SESSION, str(path.resolve()), 2)
    assert hit.snippet.mark_matches("", "") == hit.snippet.text
    assert store.search("Grüße") == [], "no block holds it"
    (line,) = read_kept_lines(store.session(SESSION), hit.line)
    assert json.loads(line.text) == json.loads(path.read_bytes().splitlines()[1])


def test_a_file_without_a_session_is_searched_too(store: SessionStore, folder: Path) -> None:
    titled = folder / "titled.jsonl"
    titled.write_text('{"type":"summary","summary":"a zebra","leafUuid":"x"}\n', encoding="utf-8")
    import_file(store, titled)

    (hit,) = search_sources(store, "zebra")

    assert store.sessions() == []
    assert (hit.session, hit.file, hit.line) == (None, str(titled.resolve()), 1)


def test_a_search_keeps_to_a_session_a_namespace_and_a_number(
    store: SessionStore, path: Path, folder: Path
) -> None:
    import_file(store, path)
    import_file(store, path, namespace="mine")
    other = Talk()
    other.user("question")
    other.entries[0]["sessionId"] = "other"
    import_file(store, write(folder, "other.jsonl", other))

    assert len(search_sources(store, "question")) == 3
    assert len(search_sources(store, "question", limit=2)) == 2
    assert [one.session for one in search_sources(store, "question", session="other")] == ["other"]
    assert {one.namespace for one in search_sources(store, "question", namespace="mine")} == {
        "mine"
    }


def test_a_line_of_a_folder_is_named_by_its_file(store: SessionStore) -> None:
    sample = next(path for path in samples() if path.parent.name == "openhands-v1")
    member = next(one for one in sorted(sample.rglob("*.json")) if one.stat().st_size > 100)
    import_file(store, sample)
    text = member.read_text(encoding="utf-8").splitlines()[0].strip()[:60]

    hits = search_sources(store, text, limit=1_000)

    assert str(sample.resolve() / member.relative_to(sample)) in {hit.file for hit in hits}


def test_what_is_not_there_is_refused_in_one_line(store: SessionStore, path: Path) -> None:
    import_file(store, path)
    store.session("own")

    with pytest.raises(InvalidSettingError, match=r"^nothing to search"):
        search_sources(store, " ")
    with pytest.raises(NotFoundError):
        search_sources(store, "x", session="nowhere")
    with pytest.raises(NotFoundError, match=r"has no line 3$"):
        read_kept_lines(store.session(SESSION), 3)
    with pytest.raises(NotFoundError, match=r"is not kept$"):
        read_kept_lines(store.session("own"), 1)


@given(
    lines=st.lists(st.text("aB\r{}é", max_size=6), max_size=12),
    text=st.text("ab{é", min_size=1, max_size=2),
    cuts=st.lists(st.integers(0, 80), max_size=6),
    ends=st.booleans(),
)
def test_the_lines_found_are_those_that_hold_the_text_however_the_bytes_are_cut(
    lines: list[str], text: str, cuts: list[int], *, ends: bool
) -> None:
    raw = ("\n".join(lines) + "\n" * ends).encode()
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    pieces = [raw[begin:end] for begin, end in pairwise(places)]

    found = list(kept_sources.find_lines(pieces, {text.encode().lower()}))

    wanted = text.encode().lower()
    assert [(number, line) for number, line, _ in found] == [
        (number, line) for number, line in enumerate(raw.split(b"\n"), 1) if wanted in line.lower()
    ]
    assert all(line.lower()[slice(*span)] == wanted for _, line, span in found)
