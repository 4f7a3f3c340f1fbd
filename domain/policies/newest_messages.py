"""Past a share of the limit, keep the newest messages and summarize the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..blocks import BlockKind
from ..errors import NothingToCompactError
from ..item import find_role, iter_message_spans_back
from ..settings import setting
from ..window import Plan, Window, find_budget_index
from .policy import ThresholdPolicy, share_setting, token_setting


@dataclass(frozen=True)
class NewestMessages(ThresholdPolicy):
    """Follows LangChain's `SummarizationMiddleware`: a number of messages stays, or a share.

    A cut that would be before a tool result moves back to its call. LangChain has no threshold of
    its own; that of its deep agents is the default.
    """

    name: ClassVar[str] = "newest-messages"
    alias: ClassVar[str] = "langchain"
    source: ClassVar[str] = "langchain-ai/langchain, agents/middleware/summarization.py"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"deepagents": {"keep_share": 0.1}}
    fires_by_tokens: ClassVar[bool] = True

    threshold: float = share_setting(0.85, help="so much of it in use fires")
    keep_messages: int = setting(20, unit="messages", least=1, help="of the newest stay")
    keep_share: float | None = setting(
        None,
        unit="of the limit",
        least=0,
        most=1,
        help="of the newest stays, in place of a number of messages; none is off",
    )
    summary_tokens: int = token_setting(4_000, least=1, help="may be the summary")

    def fires(self, window: Window) -> bool:
        return 0 < self.threshold * window.limit <= window.used_tokens

    def find_plan(self, window: Window) -> Plan | None:
        items, cut = window.open_to_cut, self._find_cut(window)
        while cut and items[cut].kind is BlockKind.TOOL_RESULT:
            cut -= 1
        if not cut:
            raise NothingToCompactError(f"nothing to compact: {self._say_what_stays()}")
        reason = f"{window.trigger}: {self._say_what_stays()}"
        return Plan(items[cut].position, reason, self.summary_tokens)

    def _find_cut(self, window: Window) -> int:
        """Return the index of the first item to keep; 0 if all of them stay."""
        items = window.open_to_cut
        if self.keep_share is not None:
            kept = int(self.keep_share * window.limit)
            exceeding = find_budget_index(window.running, kept, inclusive=False)
            return 0 if exceeding is None else min(exceeding + 1, len(items) - 1)
        messages = (start for start, _ in iter_message_spans_back(items) if find_role(items[start]))
        for number, start in enumerate(messages, 1):
            if number == self.keep_messages:
                return start
        return 0

    def _say_what_stays(self) -> str:
        if self.keep_share is None:
            return f"the newest {self.keep_messages} messages are kept"
        return f"the newest {self.keep_share:.0%} of the limit are kept"
