"""The vectors of seed 001 as windows: translated, nothing is computed."""

from dataclasses import dataclass
from typing import Any

from neutral_blocks import block_of, images_of, turn_of

from cutbank import ScoredPruning, Trigger, Window, WindowItem, get_policy
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.token_estimate import estimate_block

LEFT_OUT = {"turn_header", "artifact", "note", "summary"}
"""Kinds that the original has no messages for."""
CONFIGURED = (
    "enabled",
    "compaction_threshold",
    "protected_turns",
    "reserved_system_tokens",
    "reserved_response_tokens",
)


@dataclass(frozen=True)
class Case:
    vector: dict[str, Any]
    ids: dict[int, str]
    window: Window

    @property
    def name(self) -> str:
        return str(self.vector["vector"])

    @property
    def expected(self) -> dict[str, Any]:
        expected: dict[str, Any] = self.vector["expected"]
        return expected

    def policy(self) -> ScoredPruning:
        config = {key: self.vector["config"][key] for key in CONFIGURED}
        policy = get_policy("qbit@as_shipped", **config)
        assert isinstance(policy, ScoredPruning)
        return policy


def case_of(vector: dict[str, Any]) -> Case:
    """A window of the vector's blocks; positions are counted from 1."""
    ids: dict[int, str] = {}
    items: list[WindowItem] = []
    calls: dict[str, int] = {}
    for neutral in vector["input"]:
        if neutral["kind"] in LEFT_OUT:
            continue
        blocks: list[AnyBlock] = [block_of(neutral), *images_of(neutral)]
        for block in blocks:
            position = len(ids) + 1
            ids[position] = neutral["id"]
            name = neutral["tool_call_id"]
            call = calls.get(name) if neutral["kind"] == "tool_result" else None
            if neutral["kind"] == "tool_call":
                calls[name] = position
            items.append(WindowItem(position, block, turn_of(neutral), estimate_block(block), call))
    limit = vector["config"]["max_context_tokens"]
    return Case(vector, ids, Window(tuple(items), len(ids), limit, Trigger.THRESHOLD))
