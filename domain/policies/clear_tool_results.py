"""Past a number of tokens, show only the newest tool results; recall returns the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..blocks import BlockKind, ToolCall
from ..compaction_events import Trim
from ..errors import NothingToCompactError
from ..settings import setting
from ..trims import clear_results
from ..window import Plan, Window
from .policy import ThresholdPolicy, token_setting


@dataclass(frozen=True)
class ClearToolResults(ThresholdPolicy):
    """Follows Anthropic's context editing, `clear_tool_uses_20250919`: no summary is written.

    The results of the newest calls stay, and those of excluded tools; of the others a line is
    shown. It triggers at 100,000 tokens there, half of what its models hold.
    """

    name: ClassVar[str] = "clear-tool-results"
    alias: ClassVar[str] = "anthropic"
    source: ClassVar[str] = "Anthropic, context editing: clear_tool_uses_20250919"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "observation-masking": {"trigger_tokens": 0, "keep": 10},  # Lindenbauer et al., 2025
        "swe-agent": {"trigger_tokens": 0, "keep": 5},  # its last_n_observations
    }

    trigger_tokens: int | None = token_setting(
        None, help="in use and more fires; none is half of the limit"
    )
    keep: int = setting(3, unit="results", least=0, help="of the newest calls stay whole")
    clear_at_least: int = token_setting(0, help="must become free, or nothing is cleared")
    exclude_tools: str = setting("", help="names of tools whose results stay, with commas between")

    def fires(self, window: Window) -> bool:
        trigger = window.limit // 2 if self.trigger_tokens is None else self.trigger_tokens
        is_known = window.limit > 0 or self.trigger_tokens is not None
        return is_known and window.used_tokens > trigger and bool(self._find_trims(window))

    def find_plan(self, window: Window) -> Plan | None:
        trims = self._find_trims(window)
        if not trims:
            raise NothingToCompactError(
                f"nothing to compact: the newest {self.keep} tool results and those of excluded"
                f" tools stay, and clearing the others frees no more than"
                f" {self.clear_at_least:,} tokens"
            )
        reason = f"{window.trigger}: {len(trims):,} tool results but the newest {self.keep}"
        return Plan(None, f"{reason} are cleared", summary_tokens=0, trims=trims)

    def _find_trims(self, window: Window) -> tuple[Trim, ...]:
        return window.find_once(self, lambda: self._list_trims(window))

    def _list_trims(self, window: Window) -> tuple[Trim, ...]:
        excluded = {name.strip() for name in self.exclude_tools.split(",")} - {""}
        names = {
            item.position: item.block.name
            for item in window.items
            if isinstance(item.block, ToolCall)
        }
        results = [item for item in window.items if item.kind is BlockKind.TOOL_RESULT]
        old = [
            item
            for item in results[: len(results) - self.keep]
            if not excluded or names.get(item.call or 0) not in excluded
        ]
        cleared, saved = clear_results(window, old)
        return tuple([trim for trim, _ in cleared]) if saved > self.clear_at_least else ()
