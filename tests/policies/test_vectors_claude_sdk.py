"""Seed 004 against its vectors: what the original program answered, and what its document says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from neutral_session import NeutralSession
from vector_files import FOLDERS, Vector, lines_of

from cutbank import BlockKind, PreserveZone, Window, WindowItem, get_policy
from cutbank.domain.blocks import PROMPT_KINDS
from cutbank.domain.policies.preserve_zone import PRUNED_CHARACTERS
from cutbank.domain.policies.reference.claude_sdk import (
    MESSAGE_TOKENS,
    GoatAsShipped,
    count_goat_tokens,
    step_back,
)

CONFIGURED = ("threshold", "preserve_ratio", "preserve_recent", "max_output_tokens")
CUT_OFF = "\n... [output truncated]"
"""What the original writes behind the beginning of a shortened result."""


@dataclass(frozen=True)
class Case:
    """One vector, as a window and as positions of messages."""

    vector: Vector
    session: NeutralSession
    window: Window
    starts: Sequence[int]
    """Index of each message's first item, and where a further message would stand."""

    @property
    def expected(self) -> Vector:
        expected: Vector = self.vector["expected"]
        return expected

    @property
    def name(self) -> str:
        return str(self.vector["vector"])

    def message_at(self, item: WindowItem) -> int:
        """The index of the message that begins with an item."""
        return self.starts.index(self.window.items.index(item))

    def policy(self, preset: str = "") -> PreserveZone:
        config = self.vector["config"]
        settings = {name: config[name] for name in CONFIGURED}
        policy = get_policy(f"preserve-zone{preset}", **settings)
        assert isinstance(policy, PreserveZone)
        return policy

    def text_tokens(self) -> list[int]:
        """The size of each message, without the fixed tokens of each."""
        return [
            count_goat_tokens(self.window.items[first:end]) - MESSAGE_TOKENS
            for first, end in pairwise(self.starts)
        ]

    def split(self, policy: PreserveZone) -> tuple[Sequence[WindowItem], Sequence[WindowItem]]:
        """The items that leave and those that stay, before any repair."""
        items, split = self.window.items, policy.find_split(self.window)
        if isinstance(policy, GoatAsShipped) and split >= len(items):
            split = 0
        return items[:split], items[split:]


def case_of(vector: Vector) -> Case:
    """The vector's messages as a window, counted as the store would with the goat estimator."""
    session = NeutralSession(vector["input"])
    messages = vector["expected"]["message_block_ids"]
    said = {id for ids in messages for id in ids}
    config = vector["config"]
    window = session.window(config["context_limit"], among=lambda block: block["id"] in said)
    items = [replace(item, tokens=0) for item in window.items]
    first = {session.position(ids[0]) for ids in messages}
    starts = [index for index, item in enumerate(items) if item.position in first]
    starts.append(len(items))
    for begin, end in pairwise(starts):
        items[begin] = replace(items[begin], tokens=count_goat_tokens(items[begin:end]))
    window = Window(
        items=tuple(items),
        after=window.after,
        limit=window.limit,
        system_prompt="s" * 4 * config["system_prompt_tokens"],
    )
    return Case(vector, session, window, starts)


@pytest.mark.claim("S4.10", "S4.11", "S4.12", "S4.14", "S4.15", "S4.18", "S4.19", "S4.20")
@pytest.mark.claim("S4.26", "S4.27", "S4.28", "S4.35", "S4.36", "S4.38", "S4.39")
@FOLDERS
def test_vectors_are_answered(folder: str) -> None:
    for case in map(case_of, lines_of(folder, "goat")):
        policy, letter = case.policy("@as_shipped"), case.policy()
        check(case, {**measure(case, policy), **split(case, policy)}, case.expected)
        starts, items = case.starts, case.window.items
        moved = [starts.index(step_back(items, start)) for start in starts]
        assert moved == case.expected["adjust_table"], case.name
        pruned = {
            str(case.message_at(item)): pruned_text(item.block.text, PRUNED_CHARACTERS)
            for _, item in policy.list_old_results(case.window)
        }
        assert pruned == case.expected["pruned"], case.name
        by_the_letter = {
            "split": starts.index(letter.find_split(case.window)),
            "kept_starts_with_tool_result": split(case, letter)["kept_starts_with_tool_result"],
            "pruned_indices": [
                case.message_at(item) for _, item in letter.list_old_results(case.window)
            ],
        }
        check(case, by_the_letter, case.expected["seed_pseudocode"])


def check(case: Case, found: dict[str, Any], expected: Vector) -> None:
    assert found == {name: expected[name] for name in found}, case.name


def measure(case: Case, policy: PreserveZone) -> dict[str, Any]:
    assert isinstance(policy, GoatAsShipped)
    window, config = case.window, case.vector["config"]
    used = policy.count_in_use(window) + policy.max_output_tokens
    utilization = policy.measure_utilization(window)
    assert policy.count_system_tokens(window) == config["system_prompt_tokens"], case.name
    preserved = policy.compute_preserve_budget(case.window.limit)
    assert preserved == config["preserve_budget"], case.name
    return {
        "text_tokens": case.text_tokens(),
        "per_message_overhead": MESSAGE_TOKENS,
        "total_tokens": policy.count_message_tokens(window),
        "utilization": utilization,
        "is_overflow": used > window.limit,
        "should_compact": policy.should_compact(utilization),
        "must_compact": policy.must_compact(utilization),
        "available": max(0, window.limit - used),
    }


def split(case: Case, policy: PreserveZone) -> dict[str, Any]:
    leaves, stays = case.split(policy)
    first = stays[0].kind if leaves and stays else None
    return {
        "split": case.starts.index(policy.find_split(case.window)),
        "compacts": bool(leaves),
        "summarised_ids": case.session.ids(leaves),
        "kept_ids": case.session.ids(stays),
        "kept_starts_with_tool_result": first is BlockKind.TOOL_RESULT,
        "splits_turn": first is not None and first not in PROMPT_KINDS,
    }


def pruned_text(text: str, most: int) -> str:
    """A shortened result as the original shows it: so many bytes, and a mark.

    A character that is cut in two shows as replacement characters, one for each byte that is left
    of it.
    """
    beginning = text.encode("utf-8", "surrogatepass")[:most]
    whole = beginning.decode("utf-8", "ignore")
    broken = len(beginning) - len(whole.encode())
    return f"{whole}{'�' * broken}{CUT_OFF}"
