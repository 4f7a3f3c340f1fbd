"""What the original programs broke is repaired: each such plan ends in a legal, smaller view."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from neutral_blocks import Neutral
from neutral_session import NeutralSession
from story_rules import a_conversation_is_left
from vector_files import FOLDERS, Vector, lines_of

from cutbank import NothingToCompactError, Plan, Window
from cutbank.domain.cut_points import find_legal_cuts
from cutbank.domain.settlement import settle_plan
from cutbank.domain.trims import trim_largest_results


@dataclass(frozen=True)
class Broken:
    """A plan that should not be carried out as it is, and what is wrong with it."""

    wrong: str
    window: Window
    plan: Plan


def cut_at(session: NeutralSession, id: str) -> Plan:
    return Plan(cut=session.position(id), reason="as in the vector", summary_tokens=1)


def kdcube(vector: Vector) -> Iterator[Broken]:
    """Its window begins behind the last summary; it may cut at any block."""
    expected, config = vector["expected"], vector["config"]
    if not (cut := expected["cut"]):
        return
    session = NeutralSession(vector["input"])
    window = session.window(config["max_tokens"], behind=session.last_summary)
    at = min(cut["cut_index"], len(session.blocks) - 1)
    plan = cut_at(session, session.blocks[at]["id"])
    if expected.get("orphan_results_in_kept"):
        yield Broken("orphans a result", window, plan)
    elif not expected["compacted"] and (_takes_nothing(cut) or not _summary_fails(config)):
        yield Broken("does nothing", window, plan)


def _takes_nothing(cut: Neutral) -> bool:
    return bool(cut["cut_index"] <= cut["boundary_start"])


def _summary_fails(config: Neutral) -> bool:
    return bool(config["history_summary_fails"] or config["prefix_summary_fails"])


def tunacode(vector: Vector) -> Iterator[Broken]:
    expected = vector["expected"]
    if expected["trigger"] and expected["reason"] == "no_valid_boundary":
        session = NeutralSession(vector["input"])
        first = expected["message_block_ids"][expected["boundary"] or 0]
        window = session.window(vector["config"]["max_tokens"])
        yield Broken("does nothing", window, cut_at(session, first[0]))


def klaude(vector: Vector) -> Iterator[Broken]:
    """Its window goes on with what the last compaction kept."""
    expected = vector["expected"]
    first = expected["result"] and expected["result"]["first_kept_index"]
    if first is None or expected["message_roles"][first] != "tool_result":
        return
    session = NeutralSession(vector["input"])
    last = session.last_summary
    kept_from = last["meta"]["first_kept_block"] if last else None
    window = session.window(
        vector["config"]["context_limit"] or 0, behind=last, kept_from=kept_from
    )
    plan = cut_at(session, expected["message_block_ids"][first][0])
    yield Broken("loses content", window, plan)


def pi(vector: Vector) -> Iterator[Broken]:
    prepared = vector["expected"]["prepared"]
    if not vector["expected"]["trigger"] or not prepared:
        return
    if not prepared["messages_to_summarize"] + prepared["turn_prefix_messages"]:
        session = NeutralSession(vector["input"])
        limit = vector["config"]["context_window"]
        window = session.window(limit, behind=session.last_summary)
        yield Broken("does nothing", window, cut_at(session, prepared["first_kept_id"]))


def goat(vector: Vector) -> Iterator[Broken]:
    expected = vector["expected"]
    if expected["kept_starts_with_tool_result"]:
        session = NeutralSession(vector["input"])
        window = session.window(vector["config"]["context_limit"])
        yield Broken("parts a pair", window, cut_at(session, expected["kept_ids"][0]))


def qbit(vector: Vector) -> Iterator[Broken]:
    expected = vector["expected"]
    if expected["orphaned_tool_results"] or expected["orphaned_tool_calls"]:
        session = NeutralSession(vector["input"])
        drops = session.positions(expected["pruned_ids"])
        plan = Plan(cut=None, reason="as in the vector", summary_tokens=0, drops=drops)
        yield Broken("parts a pair", session.window(vector["config"]["max_context_tokens"]), plan)


SYSTEMS: dict[str, Callable[[Vector], Iterator[Broken]]] = {
    "kdcube": kdcube,
    "tunacode": tunacode,
    "klaude": klaude,
    "klaude_first": klaude,
    "pi_mono": pi,
    "goat": goat,
    "qbit": qbit,
}


@pytest.mark.claim("S0.7", "S0.46", "S0.49", "S1.40", "S3.18", "S3.32", "S4.52")
@FOLDERS
def test_vectors_of_broken_plans_end_in_a_legal_view(
    folder: str, record_property: Callable[[str, object], None]
) -> None:
    for system, find in SYSTEMS.items():
        repaired: Counter[str] = Counter()
        for vector in lines_of(folder, system):
            for broken in find(vector):
                try:
                    settlement = settle_plan(broken.window, broken.plan)
                except NothingToCompactError:
                    # All there is fits into one message, or waits for an answer.
                    assert not find_legal_cuts(broken.window), vector["vector"]
                    assert not trim_largest_results(broken.window, broken.window.items), vector[
                        "vector"
                    ]
                    repaired["could not be cut at all, and is told so"] += 1
                    continue
                a_conversation_is_left(broken.window, settlement)
                if broken.plan.cut in find_legal_cuts(broken.window):
                    # The result's call was nowhere to begin with: no cut can part them.
                    repaired[f"{broken.wrong}, which was an orphan before"] += 1
                else:
                    assert settlement.repairs, vector["vector"]
                    repaired[broken.wrong] += 1
        found = ", ".join(f"{count} {wrong}" for wrong, count in repaired.items())
        record_property("repaired", f"{system} ({folder}): {found or 'nothing was broken'}")
        assert found or folder == "committed", f"{system} has no broken plans to test with"
