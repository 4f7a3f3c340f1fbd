"""Past nine tenths of the limit, keep the newest words of the user and summarize all else."""

from dataclasses import dataclass
from typing import ClassVar

from ..blocks import PROMPT_KINDS, BlockKind
from ..errors import NothingToCompactError
from ..ranges import Ranges
from ..window import Plan, Window
from .policy import ThresholdPolicy, share_setting, token_setting


@dataclass(frozen=True)
class UserMessages(ThresholdPolicy):
    """Follows Codex: the newest prompts stay, and the instructions around them.

    Codex shortens the oldest prompt that stays; here it leaves, and its summary quotes it.
    """

    name: ClassVar[str] = "user-messages"
    alias: ClassVar[str] = "codex"
    source: ClassVar[str] = "openai/codex, codex-rs/core/src/compact.rs"
    fires_by_tokens: ClassVar[bool] = True

    threshold: float = share_setting(0.9, help="so much of it in use fires")
    keep_tokens: int = token_setting(20_000, help="of the user's newest prompts stay")
    summary_tokens: int = token_setting(4_096, least=1, help="may be the summary")

    def fires(self, window: Window) -> bool:
        return 0 < self.threshold * window.limit <= window.used_tokens

    def find_plan(self, window: Window) -> Plan | None:
        stays, left = set[int](), self.keep_tokens
        for item in reversed(window.items):
            if item.kind is BlockKind.DEVELOPER:
                stays.add(item.position)
            elif item.kind in PROMPT_KINDS and left >= 0:
                left -= item.tokens
                if left >= 0:
                    stays.add(item.position)
        gone = [item.position for item in window.items if item.position not in stays]
        if not gone:
            raise NothingToCompactError("nothing to compact: there are only prompts, which stay")
        kept = self.keep_tokens
        reason = f"{window.trigger}: the newest prompts up to {kept:,} tokens are kept"
        return Plan(None, reason, self.summary_tokens, drops=Ranges.of(gone))
