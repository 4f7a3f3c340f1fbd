"""Defines the section `context`, which configures pruning as in seed 001."""

from typing import Any

from ...domain.policies.scored_pruning import ScoredPruning
from ...domain.tool_result_size import MIN_SHOWN_TOKENS
from .section import Section, section_setting


class ContextSettings(Section):
    """Old messages are pruned, by the policy scored-pruning; nothing is summed up."""

    enabled: bool = section_setting(True, help="prune old messages when the context is nearly full")
    compaction_threshold: float = section_setting(
        0.80, unit="of the limit", least=0.05, most=1, help="in use from which on it prunes"
    )
    protected_turns: int = section_setting(
        2, unit="turns", least=0, help="newest turns that are never pruned"
    )
    cooldown_seconds: float = section_setting(
        60.0, unit="seconds", least=0, help="between two prunings by threshold"
    )
    max_tool_response_tokens: int | None = section_setting(
        None,
        unit="tokens",
        least=MIN_SHOWN_TOKENS,
        help="that are shown of a tool's answer; the log keeps all of it",
    )

    def make_policy_settings(self) -> dict[str, Any]:
        """Return the policy's settings that this section contains."""
        return {
            name: getattr(self, name)
            for name in self.model_fields_set & ScoredPruning.__dataclass_fields__.keys()
        }
