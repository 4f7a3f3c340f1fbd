"""What counts as a fact in a text, and what an occurrence of it carries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import LINE, Anchor, AnchorKind, anchors_of, carried_by
from cutbank.domain.fidelity.patterns import LONGEST
from cutbank.domain.fidelity.word_facts import Words

K = AnchorKind
ROOTS = ("/home/ada/work", "/home/ada/work/app")


def facts(text: str, *roots: str) -> list[tuple[str, AnchorKind]]:
    return [(anchor.key, anchor.kind) for anchor in anchors_of(text, roots)]


def keys(text: str, *roots: str) -> list[str]:
    return [key for key, _ in facts(text, *roots)]


def carried(text: str) -> set[str]:
    return {key for anchor in anchors_of(text) for key in carried_by(anchor)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.example/x?y=1&z=2.", [("https://a.example/x?y=1&z=2", K.URL)]),
        ("(ssh://git@a.example/b.git)", [("ssh://git@a.example/b.git", K.URL)]),
        (
            "0a1b2c3d-0000-4111-8222-0123456789ab",
            [("0a1b2c3d-0000-4111-8222-0123456789ab", K.HASH)],
        ),
        ("run --dry-run=no", [("--dry-run", K.FLAG)]),
        ("in src/app/core", [("src/app/core", K.PATH)]),
        ("in /etc/hosts", [("/etc/hosts", K.PATH)]),
        ("in ~/notes", [("~/notes", K.PATH)]),
        ("in src/app.py:12", [("src/app.py", K.PATH)]),
        ("in src/my_app", [("src/my_app", K.PATH)]),
        ("app.py and Makefile.toml.", [("app.py", K.PATH), ("Makefile.toml", K.PATH)]),
        ("commit 1a2b3c4", [("1a2b3c4", K.HASH)]),
        ("error[E0308]: no", [("E0308", K.ERROR)]),
        (
            "issue #12, v1.2.3, 10.0.0.1",
            [("#12", K.NUMBER), ("v1.2.3", K.NUMBER), ("10.0.0.1", K.NUMBER)],
        ),
        ("took 12 ms, 1.5 GB, 30%", [("12ms", K.NUMBER), ("1.5GB", K.NUMBER), ("30%", K.NUMBER)]),
        ("port 65535.", [("65535", K.NUMBER)]),
        ("load_rows loadRows", [("load_rows", K.IDENTIFIER), ("loadRows", K.IDENTIFIER)]),
        (
            "Row::fromText row->next_one",
            [("Row::fromText", K.IDENTIFIER), ("row->next_one", K.IDENTIFIER)],
        ),
        ("self.load_rows()", [("load_rows", K.IDENTIFIER)]),
        ("this.loadRows", [("loadRows", K.IDENTIFIER)]),
        ("raise KeyError", [("KeyError", K.ERROR)]),
        ("app.errors.LoadFailure", [("app.errors.LoadFailure", K.ERROR)]),
        ("$HOME_DIR", [("$HOME_DIR", K.IDENTIFIER)]),
    ],
)
def test_each_kind_of_fact_is_known_by_its_spelling(
    text: str, expected: list[tuple[str, AnchorKind]]
) -> None:
    assert facts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "plain words only",
        "2026-01-01T10:00:00Z and 10:00:00.12345",
        "and/or, read/write",
        "12/34/56",
        "os.getcwd conn.close self.name",
        "a_b",
        "_private",
        "1234",
        "3.12",
        "deadbeef",
        "1 file",
        "- -x --",
        "self.",
    ],
)
def test_what_anybody_would_write_unaided_is_no_fact(text: str) -> None:
    assert facts(text) == []


def test_dates_and_times_are_read_over() -> None:
    assert keys("at 2026-01-01T10:00:00 in src/app.py") == ["src/app.py"]


def test_white_space_in_a_number_with_its_unit_is_left_out() -> None:
    assert keys("took 12 ms") == keys("took 12ms") == keys("took 12\tms") == ["12ms"]
    assert keys("took 12\nms") == []


def test_paths_are_told_without_the_longest_root_that_they_begin_with() -> None:
    assert keys("/home/ada/work/app/src/x.py", *ROOTS) == ["src/x.py"]
    assert keys("/home/ada/work/tool/x.py", *ROOTS) == ["tool/x.py"]
    assert keys("/home/ada/working/x.py", *ROOTS) == ["/home/ada/working/x.py"]
    assert keys("cd /home/ada/work/", *ROOTS) == []


def test_paths_are_told_without_what_a_shell_or_a_diff_puts_before_them() -> None:
    assert keys("./src/x.py") == ["src/x.py"]
    assert keys("--- a/src/x.py\n+++ b/src/x.py") == ["src/x.py", "src/x.py"]


def test_a_fact_too_long_to_remember_is_none() -> None:
    assert keys("x/" + "y" * (LONGEST - 5) + ".py") == ["x/" + "y" * (LONGEST - 5) + ".py"]
    assert keys("x/" + "y" * (LONGEST - 4) + ".py") == []


def test_a_path_carries_its_tails_of_four_characters_or_more() -> None:
    assert carried("x1/b/long.py") == {"x1/b/long.py", "b/long.py", "long.py"}
    assert carried("x1/b/c") == {"x1/b/c"}
    assert carried("/etc/hosts") == {"/etc/hosts", "etc/hosts", "hosts"}


def test_a_joined_name_carries_its_parts_that_tell_something() -> None:
    assert carried("m.load_rows") == {"m.load_rows", "load_rows"}
    assert carried("m.load_rows.close") == {"m.load_rows.close", "load_rows.close", "load_rows"}
    assert carried("m.sub.load_rows") == {"m.sub.load_rows", "sub.load_rows", "load_rows"}


def test_other_facts_carry_themselves_alone() -> None:
    assert carried("https://a.example/src/app.py") == {"https://a.example/src/app.py"}
    assert carried("v1.2.3 --dry-run 1a2b3c4") == {"v1.2.3", "--dry-run", "1a2b3c4"}


def test_long_lines_are_read_in_pieces() -> None:
    line = "x" * (LINE - 3) + " load_rows"

    assert keys("load_rows\n" + line) == ["load_rows", "ad_rows"]


def test_a_fact_says_where_it_stands() -> None:
    text = "x" * LINE * 2 + "\nsee ./src/app.py. " + "y" * LINE + "\ntook 12 ms"

    assert [text[one.start : one.end] for one in anchors_of(text)] == ["./src/app.py", "12 ms"]


PUNCTUATION = list("_-./:()[]<>=,;'\"`#$%~@&|\\")
WORDS = ["a", "b", "x1", "Ab", "é", "py", ".py", "src", "ms", "a1b2c3d", "E0308", "Error", "self."]
NUMBERS = ["9", "12", "123456", "T10:00", "2026-01-01"]
JOINTS = ["--", "..", "//", "::", "->", "://"]
SPACES = [" ", "\n", "\t", "\r", "\u00a0", "\u2028", "\x85"]
PIECES = st.sampled_from([*PUNCTUATION, *WORDS, *NUMBERS, *JOINTS, *SPACES])
SPACED = st.lists(PIECES, max_size=30).map("".join)


@given(SPACED)
def test_facts_never_overlap_and_stand_where_they_say(text: str) -> None:
    end = 0
    for anchor in anchors_of(text):
        assert end <= anchor.start < anchor.end <= len(text)
        assert 0 < len(anchor.key) <= LONGEST
        assert anchor.key in text[anchor.start : anchor.end].replace(" ", "").replace("\t", "")
        end = anchor.end


@given(SPACED, st.sampled_from(["", "x" * LINE, "x" * (LINE + 1)]))
def test_a_text_holds_what_its_lines_hold(text: str, line: str) -> None:
    whole = f"{text}\n{line}\n{text}"

    apart = [fact for one in whole.split("\n") for fact in facts(one)]

    assert facts(whole) == apart


@given(SPACED, SPACED, st.sampled_from(["", "x" * (LINE + 1)]))
def test_words_are_read_alone_as_they_are_read_in_their_text(
    text: str, other: str, line: str
) -> None:
    words = Words(ROOTS)
    words.carried(other)  # whatever was read before
    whole = text + line

    found = list(anchors_of(whole, ROOTS))

    assert words.carried(whole) == {key for one in found for key in carried_by(one)}
    assert words.facts(whole).keys() == {one.key for one in found}


@pytest.mark.parametrize(
    "text", ["console.log(x)", "app.log x", "http://a.example/?x=1,2;y=3!z x,y", "took (12 ms)"]
)
def test_what_ends_a_word_tells_what_it_was(text: str) -> None:
    assert Words().carried(text) == carried(text)


@given(SPACED)
def test_an_occurrence_carries_its_own_key_first_and_parts_of_it(text: str) -> None:
    for anchor in anchors_of(text):
        own, *parts = carried_by(anchor)
        assert own == anchor.key
        assert all(part in own and part != own for part in parts)
        assert len(set(parts)) == len(parts)


def test_what_is_carried_depends_on_the_key_and_its_kind_alone() -> None:
    assert carried_by(Anchor("src/app.py", K.PATH, 0, 10)) == ("src/app.py", "app.py")
    assert carried_by(Anchor("src/app.py", K.URL, 0, 10)) == ("src/app.py",)
