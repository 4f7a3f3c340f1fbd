"""Seed 004 against its vectors: what the original program answered, and what its document says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from neutral_blocks import block_of, images_of, turn_of
from vector_files import FOLDERS, Vector, lines_of

from cutbank.adapters.settings.policy_catalog import get_policy
from cutbank.domain.blocks import PROMPT_KINDS, AnyBlock, Kind
from cutbank.domain.counting.estimators import ESTIMATORS
from cutbank.domain.item import Item
from cutbank.domain.policies.preserve_zone import PreserveZone, step_back
from cutbank.domain.window import Window

GOAT = ESTIMATORS["goat"]
CONFIGURED = ("threshold", "critical", "preserve_ratio", "preserve_recent", "max_output_tokens")
CUT_OFF = "\n... [output truncated]"
"""What the original writes behind the beginning of a shortened result."""


@dataclass(frozen=True)
class Case:
    """One vector, as a window and as positions of messages."""

    vector: Vector
    window: Window
    ids: dict[int, list[str]]
    """The neutral blocks that an item stands for; an image stands for none of its own."""

    @property
    def expected(self) -> Vector:
        expected: Vector = self.vector["expected"]
        return expected

    @property
    def name(self) -> str:
        return str(self.vector["vector"])

    @property
    def starts(self) -> list[int]:
        """Index of each message's first item, and where a further message would stand."""
        at = {id: index for index, item in enumerate(self.window.items) for id in self._ids(item)}
        messages = self.expected["message_block_ids"]
        return [*(at[ids[0]] for ids in messages), len(self.window.items)]

    @property
    def messages(self) -> list[Sequence[Item]]:
        starts = self.starts
        return [self.window.items[first:end] for first, end in pairwise(starts)]

    def ids_of(self, items: Sequence[Item]) -> list[str]:
        return [id for item in items for id in self._ids(item)]

    def policy(self, preset: str = "") -> PreserveZone:
        config = self.vector["config"]
        settings = {name: config[name] for name in CONFIGURED}
        policy = get_policy(f"preserve-zone{preset}", **settings)
        assert isinstance(policy, PreserveZone)
        return policy

    def text_tokens(self, policy: PreserveZone) -> list[int]:
        """The size of each message, without the fixed tokens of each."""
        assert policy.estimator is not None
        texts = replace(policy.estimator, extra_tokens=0)
        return [texts.count_message([item.block for item in one]) for one in self.messages]

    def split(self, policy: PreserveZone) -> tuple[Sequence[Item], Sequence[Item]]:
        """The items that leave and those that stay, before any repair."""
        items, split = self.window.items, policy.find_split(self.window)
        if policy.keeps_newest and split >= len(items):
            split = 0
        return items[:split], items[split:]

    def _ids(self, item: Item) -> list[str]:
        return self.ids[item.position]


def case_of(vector: Vector) -> Case:
    """The vector's messages as a window, counted as the store would with the goat estimator."""
    blocks = {neutral["id"]: neutral for neutral in vector["input"]}
    items: list[Item] = []
    ids: dict[int, list[str]] = {}
    calls: dict[str, int] = {}
    for message in vector["expected"]["message_block_ids"]:
        said: list[tuple[AnyBlock, list[str], int]] = []
        for id in message:
            turn = turn_of(blocks[id])
            said.append((block_of(blocks[id]), [id], turn))
            said += [(image, [], turn) for image in images_of(blocks[id])]
        for index, (block, own, turn) in enumerate(said):
            position = len(items) + 1
            call = None
            if (name := getattr(block, "tool_call_id", None)) and block.kind == "tool_call":
                calls[name] = position
            elif name:
                call = calls.get(name)
            tokens = 0 if index else GOAT.count_message([one for one, _, _ in said])
            items.append(Item(position, block, turn, tokens, call=call))
            ids[position] = own
    window = Window(
        items=tuple(items),
        after=len(items),
        limit=vector["config"]["context_limit"],
        system_prompt="s" * 4 * vector["config"]["system_prompt_tokens"],
    )
    return Case(vector, window, ids)


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
            str(starts.index(item.position - 1)): pruned_text(item.block.text, policy.prune_to)
            for item, _ in policy.list_old_results(items)
        }
        assert pruned == case.expected["pruned"], case.name
        by_the_letter = {
            "split": starts.index(letter.find_split(case.window)),
            "kept_starts_with_tool_result": split(case, letter)["kept_starts_with_tool_result"],
            "pruned_indices": [
                starts.index(item.position - 1) for item, _ in letter.list_old_results(items)
            ],
        }
        check(case, by_the_letter, case.expected["seed_pseudocode"])


def check(case: Case, found: dict[str, Any], expected: Vector) -> None:
    assert found == {name: expected[name] for name in found}, case.name


def measure(case: Case, policy: PreserveZone) -> dict[str, Any]:
    budget, config = policy.measure_budget(case.window), case.vector["config"]
    assert budget.system_tokens == config["system_prompt_tokens"], case.name
    preserved = policy.compute_preserve_budget(case.window.limit)
    assert preserved == config["preserve_budget"], case.name
    return {
        "text_tokens": case.text_tokens(policy),
        "per_message_overhead": policy.message_tokens,
        "total_tokens": budget.message_tokens,
        "utilization": budget.utilization,
        "is_overflow": budget.used_tokens > budget.limit,
        "should_compact": policy.should_compact(budget),
        "must_compact": policy.must_compact(budget),
        "available": max(0, budget.limit - budget.used_tokens),
    }


def split(case: Case, policy: PreserveZone) -> dict[str, Any]:
    leaves, stays = case.split(policy)
    first = stays[0].kind if leaves and stays else None
    return {
        "split": case.starts.index(policy.find_split(case.window)),
        "compacts": bool(leaves),
        "summarised_ids": case.ids_of(leaves),
        "kept_ids": case.ids_of(stays),
        "kept_starts_with_tool_result": first is Kind.TOOL_RESULT,
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
