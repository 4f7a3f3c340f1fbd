"""What left a view, what stands for it, and which facts are told no more."""

from itertools import combinations_with_replacement
from typing import Any

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from lived import LIMIT, POLICY, Act, acts, live

import cutbank
from cutbank import Block, CompactionOptions, Ranges, StoredSession, ToolCall, ToolResult, diff
from cutbank.adapters.analysis.diffs import (
    ViewReference,
    list_boundaries,
    read_fact_log,
    read_views_around,
)
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.compaction import check_lineage_syntax
from cutbank.domain.errors import InvalidPositionError, InvalidSettingError, NotFoundError
from cutbank.domain.fidelity.anchors import AnchorKind
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.projections.lost_facts import CONSTRAINT, DECISION, LostFact, ViewText
from cutbank.projections.view_diff import ViewDiff


class Terse:
    """A summarizer that says one thing whatever left."""

    name = "terse"

    def __init__(self, text: str) -> None:
        self.text = text

    def summarize(self, _: Material) -> Draft:
        return Draft(self.text)


FILLER = "silt and clay and gravel\n" * 60
BED = "src/river/bed.py"


def looked(path: str = BED, text: str = "", *, by: str = "read") -> list[AnyBlock]:
    call = f"look at {path}"
    return [
        ToolCall(tool_call_id=call, name=by, arguments={"path": path}),
        ToolResult(tool_call_id=call, content=text or "raise SiltError()\n" + FILLER * 3),
    ]


def talk(session: StoredSession, *blocks: AnyBlock, user: str = "Go.") -> int:
    """Say something that the next compaction takes out; return its first handle."""
    first = session.append(Block.user(user), *blocks).first
    session.append(Block.user("And now?"), Block.assistant(FILLER))
    return first


def compacted(session: StoredSession, text: str = "They talked.", **options: Any) -> ViewDiff:
    more = CompactionOptions(summarizers=[Terse(text)], **options)
    session.compact(POLICY, limit=LIMIT, options=more)
    return cutbank.diff(session, lineage=more.lineage)


def lost(found: ViewDiff) -> dict[str, LostFact]:
    return {fact.text: fact for fact in found.lost_facts}


def test_what_left_is_listed_with_what_stands_for_it_and_the_facts_that_are_lost(
    session: StoredSession,
) -> None:
    first = talk(session, *looked(), user=f"Look at {BED}.")

    found = compacted(session, "They looked at a file.")

    assert first in found.handles
    assert (found.removed[0].kind, found.removed[0].line) == ("user", f"Look at {BED}.")
    assert found.summary is not None
    assert found.summary.text == "They looked at a file."
    assert found.summarized_blocks == found.handles
    assert not found.unmentioned_blocks
    assert found.added == ()
    assert found.tokens < found.tokens_before
    bed, error = lost(found)[BED], lost(found)["SiltError"]
    assert (bed.kind, bed.by_user) == (AnchorKind.PATH, True)
    assert bed.handles == Ranges.of([first, first + 1])
    assert (error.kind, error.by_user) == (AnchorKind.ERROR, False)


SEEN = "src/seen.py\n" + FILLER
UNITS = "--- a/src/two.py\n112 lines, 7ms; 112lines, 7 ms\n" + FILLER * 4
NEVER = "You must never drain the northern reservoir. Always ask the keeper first."
DREDGE = "We decided to dredge by hand because machines stir up the mud."
BOTH = [*looked("src/one.py", SEEN), *looked("src/three.py", SEEN)]
FACTS: dict[str, tuple[list[AnyBlock], dict[str, str], list[str]]] = {
    "what the summary tells is not lost, even as a part": (
        looked("river/bed.py"),
        {"summary": f"They read {BED} and met a SiltError."},
        [],
    ),
    "what all projects share and what tools are called": (
        looked("README.md", FILLER * 4, by="read_some_file"),
        {"user": "Use read_some_file."},
        [],
    ),
    "in the words that the view told first": (
        looked("src/one.py", UNITS),
        {},
        ["src/one.py", "a/src/two.py", "112 lines", "7ms"],
    ),
    "what the agent used comes before what it only saw": (
        [*BOTH, Block.assistant("I mean src/one.py.")],
        {},
        ["src/one.py", "src/three.py", "src/seen.py"],
    ),
    "rules and decisions, unless they are said nearly so": (
        [Block.assistant(DREDGE), *looked("README.md", FILLER * 9)],
        {"user": NEVER, "summary": "Rule: never drain the northern reservoir; you must not."},
        ["Always ask the keeper first.", DREDGE],
    ),
}


@pytest.mark.parametrize(("blocks", "words", "facts"), FACTS.values(), ids=FACTS)
def test_facts_that_no_view_tells_any_more_are_lost(
    session: StoredSession, blocks: list[AnyBlock], words: dict[str, str], facts: list[str]
) -> None:
    talk(session, *blocks, user=words.get("user", "Go."))

    found = compacted(session, words.get("summary", "They talked."))

    assert [fact.text for fact in found.lost_facts] == facts
    if DREDGE in facts:
        assert [fact.kind for fact in found.lost_facts] == [CONSTRAINT, DECISION]


def test_what_the_agent_used_again_comes_first_unless_it_was_told_anew_before(
    session: StoredSession,
) -> None:
    talk(session, *looked("src/one.py"), *looked("src/two.py"), *looked("src/three.py"))
    compacted(session)
    again = session.append(Block.user("I meant src/three.py.")).first
    later = session.append(Block.assistant("I look into src/two.py and src/three.py.")).first

    found = cutbank.diff(session)

    assert found.lost_facts[0].text == "src/two.py"
    assert {text: (fact.later_uses, fact.repeated_at) for text, fact in lost(found).items()} == {
        "src/one.py": (Ranges(), None),
        "src/two.py": (Ranges.of([later]), None),
        "src/three.py": (Ranges(), again),
        "SiltError": (Ranges(), None),
    }


def test_what_a_summary_invents_is_found_out_and_its_handles_and_tags_are_no_facts(
    session: StoredSession,
) -> None:
    talk(session, *looked("src/two.py"))

    found = compacted(
        session, "They edited src/invented.py (#3, #4-5).\n<read-files>\nsrc/two.py\n</read-files>"
    )

    assert [(fact.text, fact.handles) for fact in found.gained_facts] == [
        ("src/invented.py", Ranges())
    ]


def test_a_prepared_boundary_is_compared_as_if_it_were_served(session: StoredSession) -> None:
    talk(session, *looked("src/two.py"))

    found = compacted(session, activate=False)

    assert session.view().boundary is None
    assert found.boundary is not None
    assert "src/two.py" in lost(found)
    session.activate()
    assert cutbank.diff(session).lost_facts == found.lost_facts


def test_between_lineages_and_coordinates_any_two_views_can_be_compared(
    session: StoredSession,
) -> None:
    talk(session, *looked("src/two.py"))
    at = session.position
    compacted(session, lineage="what-if")

    whole = cutbank.diff(session, after="what-if")
    sideways = cutbank.diff(session, before="main", after="what-if")
    earlier = cutbank.diff(session, before=f"#{at - 2}", after=f"#{at}")

    assert whole.before.lineage_version == 0
    assert whole.handles == sideways.handles
    assert "src/two.py" in lost(sideways)
    assert not earlier.removed
    assert [block.position for block in earlier.added] == [at - 1, at]


def test_a_boundary_that_does_not_exist_is_refused_with_those_that_do(
    session: StoredSession,
) -> None:
    with pytest.raises(NotFoundError, match="nothing was compacted"):
        cutbank.diff(session)
    talk(session, *looked())
    compacted(session)

    with pytest.raises(NotFoundError, match=r"no boundary 9 \(there is: 3\)"):
        cutbank.diff(session, 9)
    with pytest.raises(NotFoundError, match="no lineage 'x'"):
        cutbank.diff(session, before="x")
    with pytest.raises(InvalidSettingError, match="a boundary names both views"):
        cutbank.diff(session, 3, before="main")


def test_a_view_is_named_by_lineage_version_and_position() -> None:
    rows = {
        "main": ViewReference("main"),
        "main@3": ViewReference("main", 3),
        "#120": ViewReference("what-if", None, 120),
        "@3#120": ViewReference("what-if", 3, 120),
        "x:a b@0#7": ViewReference("x:a b", 0, 7),
    }

    assert {text: ViewReference.parse(text, "what-if") for text in rows} == rows
    with pytest.raises(InvalidPositionError, match="names no view"):
        ViewReference.parse(" ")


@given(st.text(), st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_name_that_a_lineage_may_have_names_its_views(name: str, version: int, at: int) -> None:
    try:
        check_lineage_syntax(name)
    except InvalidSettingError:
        assert {"#", "@"} & set(name) or name != name.strip() or not name.isprintable() or not name
        return

    assert ViewReference.parse(name) == ViewReference(name)
    assert ViewReference.parse(f"{name}@{version}#{at}") == ViewReference(name, version, at)
    assert ViewReference.parse(f"{name}#{at}") == ViewReference(name, None, at)


@settings(max_examples=12)
@given(acts)
def test_a_lost_fact_is_in_the_old_view_and_nowhere_in_the_new_one(what: list[Act]) -> None:
    with cutbank.open(":memory:", clock=Clock()) as store:
        session = live(store.session("s"), what)
        for lineage in session.log.lineages:
            for number in list_boundaries(session, lineage)[-3:]:
                found = diff(session, number, lineage=lineage)
                old, new = (
                    ViewText(view, read_fact_log(session))
                    for view in read_views_around(session, number, lineage)
                )
                for fact in found.lost_facts:
                    assert fact.key not in new.full_text
                    if isinstance(fact.kind, AnchorKind):
                        assert fact.key in old.carried_keys
                        assert fact.key not in new.carried_keys
                        assert fact.text in old.full_text
                        summary = found.summary_before
                        assert fact.handles or (summary and fact.text in summary.text)


@settings(max_examples=12)
@given(acts)
def test_every_block_that_left_or_came_is_listed_once_and_backwards_it_is_mirrored(
    what: list[Act],
) -> None:
    with cutbank.open(":memory:", clock=Clock()) as store:
        session = live(store.session("s"), what)
        log = read_fact_log(session)
        # Boundaries on every lineage, with and without them, and some positions of the log.
        views = [
            ViewReference(lineage, version, position)
            for lineage in session.log.lineages or ["main"]
            for version in {0, *list_boundaries(session, lineage)}
            for position in {session.position // 2 or 1, session.position}
        ]
        for before, after in combinations_with_replacement(views[:6], 2):
            there = diff(session, before=before, after=after, log=log)
            back = diff(session, before=after, after=before, log=log)
            old, new = (
                session.view(lineage=p.lineage, at=p.position, lineage_version=p.version)
                for p in (before, after)
            )
            had = {entry.position for entry in old.entries}
            has = {entry.position for entry in new.entries}
            assert sorted(block.position for block in there.removed) == sorted(had - has)
            assert sorted(block.position for block in there.added) == sorted(has - had)
            assert (there.removed, there.added) == (back.added, back.removed)
            assert (there.lost_facts, there.gained_facts) == (back.gained_facts, back.lost_facts)
            assert (there.before, there.after) == (back.after, back.before)
            assert (there.summary, there.summary_before) == (back.summary_before, back.summary)
            stayed = zip(
                (entry for entry in old.entries if entry.position in has),
                (entry for entry in new.entries if entry.position in had),
                strict=True,
            )
            changed = [one.position for one, other in stayed if one.shown != other.shown]
            assert [one.position for one in there.changed] == changed
            assert [one.position for one in back.changed] == changed
            assert there.is_empty == back.is_empty
            assert there.is_empty or before != after
