"""What counts as a fact in a text, and what an occurrence of it carries."""

from hypothesis import example, given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import (
    MAX_FACT_CHARS,
    MAX_LINE_CHARS,
    AnchorKind,
    find_anchors,
    list_carried_keys,
    sort_longest_first,
)
from cutbank.domain.fidelity.words import WordReader

K = AnchorKind
ROOTS = ("/home/ada/work", "/home/ada/work/app")


def facts(text: str, *roots: str) -> list[tuple[str, AnchorKind]]:
    return [(anchor.key, anchor.kind) for anchor in find_anchors(text, sort_longest_first(roots))]


def keys(text: str, *roots: str) -> list[str]:
    return [key for key, _ in facts(text, *roots)]


def carried(text: str) -> set[str]:
    return {key for anchor in find_anchors(text) for key in list_carried_keys(anchor)}


def test_each_kind_of_fact_is_known_by_its_spelling() -> None:
    uuid = "0a1b2c3d-0000-4111-8222-0123456789ab"
    spellings: dict[AnchorKind, dict[str, list[str]]] = {
        K.URL: {
            "see https://a.example/x?y=1&z=2.": ["https://a.example/x?y=1&z=2"],
            "(ssh://git@a.example/b.git)": ["ssh://git@a.example/b.git"],
        },
        K.HASH: {uuid: [uuid], "commit 1a2b3c4": ["1a2b3c4"]},
        K.FLAG: {"run --dry-run=no": ["--dry-run"]},
        K.PATH: {
            **{f"in {path}": [path] for path in ("src/app/core", "/etc/hosts", "~/notes")},
            "in src/app.py:12": ["src/app.py"],
            "in src/my_app": ["src/my_app"],
            "app.py and Makefile.toml.": ["app.py", "Makefile.toml"],
            "at 2026-01-01T10:00:00 in src/app.py": ["src/app.py"],
        },
        K.ERROR: {
            "error[E0308]: no": ["E0308"],
            "raise KeyError": ["KeyError"],
            "app.errors.LoadFailure": ["app.errors.LoadFailure"],
        },
        K.NUMBER: {
            "issue #12, v1.2.3, 10.0.0.1": ["#12", "v1.2.3", "10.0.0.1"],
            "took 12 ms, 1.5 GB, 30%": ["12ms", "1.5GB", "30%"],
            "port 65535.": ["65535"],
        },
        K.IDENTIFIER: {
            "load_rows loadRows": ["load_rows", "loadRows"],
            "Row::fromText row->next_one": ["Row::fromText", "row->next_one"],
            "self.load_rows()": ["load_rows"],
            "this.loadRows": ["loadRows"],
            "$HOME_DIR": ["$HOME_DIR"],
        },
    }

    for kind, texts in spellings.items():
        found = {text: [(key, kind) for key in keys] for text, keys in texts.items()}
        assert {text: facts(text) for text in texts} == found


def test_what_anybody_would_write_unaided_is_no_fact() -> None:
    texts = [
        *("plain words only", "and/or, read/write", "12/34/56", "os.getcwd conn.close self.name"),
        *("2026-01-01T10:00:00Z and 10:00:00.12345", "a_b", "_private", "1234", "3.12"),
        *("deadbeef", "1 file", "- -x --", "self.", "took 12\nms"),
    ]

    assert not [text for text in texts if facts(text)]


def test_white_space_and_what_a_shell_or_a_diff_puts_before_a_fact_is_left_out() -> None:
    assert keys("took 12 ms") == keys("took 12ms") == keys("took 12\tms") == ["12ms"]
    assert keys("./src/x.py") == ["src/x.py"]
    assert keys("--- a/src/x.py\n+++ b/src/x.py") == ["src/x.py", "src/x.py"]


def test_paths_are_told_without_the_longest_root_that_they_begin_with() -> None:
    assert keys("/home/ada/work/app/src/x.py", *ROOTS) == ["src/x.py"]
    assert keys("/home/ada/work/tool/x.py", *ROOTS) == ["tool/x.py"]
    assert keys("/home/ada/working/x.py", *ROOTS) == ["/home/ada/working/x.py"]
    assert keys("cd /home/ada/work/", *ROOTS) == []


def test_a_fact_too_long_to_remember_is_none() -> None:
    assert keys("x/" + "y" * (MAX_FACT_CHARS - 5) + ".py") == [
        "x/" + "y" * (MAX_FACT_CHARS - 5) + ".py"
    ]
    assert keys("x/" + "y" * (MAX_FACT_CHARS - 4) + ".py") == []


def test_a_fact_carries_its_parts_that_tell_something() -> None:
    parts = {
        "x1/b/long.py": {"b/long.py", "long.py"},
        "x1/b/c": set(),
        "/etc/hosts": {"etc/hosts", "hosts"},
        "m.load_rows": {"load_rows"},
        "m.load_rows.close": {"load_rows.close", "load_rows"},
        "m.sub.load_rows": {"sub.load_rows", "load_rows"},
        "https://a.example/src/app.py": set(),
        "v1.2.3": set(),
        "--dry-run": set(),
        "1a2b3c4": set(),
    }

    assert {text: carried(text) - {text} for text in parts} == parts


def test_long_lines_are_read_in_pieces() -> None:
    line = "x" * (MAX_LINE_CHARS - 3) + " load_rows"

    assert keys("load_rows\n" + line) == ["load_rows", "ad_rows"]


def test_a_fact_says_where_it_stands() -> None:
    text = "x" * MAX_LINE_CHARS * 2 + "\nsee ./src/app.py. " + "y" * MAX_LINE_CHARS + "\ntook 12 ms"

    assert [text[one.start : one.end] for one in find_anchors(text)] == ["./src/app.py", "12 ms"]


PUNCTUATION = list("_-./:()[]<>=,;'\"`#$%~@&|\\")
WORDS = ["a", "b", "x1", "Ab", "é", "py", ".py", "src", "ms", "a1b2c3d", "E0308", "Error", "self."]
NUMBERS = ["9", "12", "123456", "T10:00", "2026-01-01"]
JOINTS = ["--", "..", "//", "::", "->", "://"]
SPACES = [" ", "\n", "\t", "\r", "\u00a0", "\u2028", "\x85"]
PIECES = st.sampled_from([*PUNCTUATION, *WORDS, *NUMBERS, *JOINTS, *SPACES])
SPACED = st.lists(PIECES, max_size=30).map("".join)


@example("console.log(x)\napp.log x\ntook (12 ms)", "", "")
@example("http://a.example/?x=1,2;y=3!z x,y", "", "")
@given(SPACED, SPACED, st.sampled_from(["", "x" * (MAX_LINE_CHARS + 1)]))
def test_words_are_read_alone_as_they_are_read_in_their_text(
    text: str, other: str, line: str
) -> None:
    words = WordReader(ROOTS)
    words.find_carried_keys(other)  # whatever was read before
    whole = text + line

    found = list(find_anchors(whole, ROOTS))

    assert words.find_carried_keys(whole) == {
        key for one in found for key in list_carried_keys(one)
    }
    assert words.find_facts(whole).keys() == {one.key for one in found}


@given(SPACED)
def test_an_occurrence_carries_its_own_key_first_and_parts_of_it(text: str) -> None:
    for anchor in find_anchors(text):
        own, *parts = list_carried_keys(anchor)
        assert own == anchor.key
        assert all(part in own and part != own for part in parts)
        assert len(set(parts)) == len(parts)
