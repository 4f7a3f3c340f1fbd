"""Past nine tenths of the limit, keep the newest words of the user and summarize all else."""

from dataclasses import dataclass
from typing import ClassVar

from ..blocks import PROMPT_KINDS, BlockKind
from ..compaction_events import Trigger
from ..errors import NothingToCompactError
from ..ranges import Ranges
from ..window import Plan, Window
from .policy import check_settings, share_setting, token_setting


@dataclass(frozen=True)
class UserMessages:
    """Follows Codex: the newest prompts stay, and the instructions around them.

    Codex shortens the oldest prompt that stays; here it leaves, and its summary quotes it.
    """

    name: ClassVar[str] = "user-messages"
    alias: ClassVar[str] = "codex"
    source: ClassVar[str] = "openai/codex, codex-rs/core/src/compact.rs"

    threshold: float = share_setting(0.9, help="so much of it in use fires")
    keep_tokens: int = token_setting(20_000, help="of the user's newest prompts stay")
    summary_tokens: int = token_setting(4_096, least=1, help="may be the summary")

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def fires_by_tokens(self) -> bool:
        return True

    def fires(self, window: Window) -> bool:
        return 0 < self.threshold * window.limit <= window.used_tokens

    def plan(self, window: Window) -> Plan | None:
        if window.trigger is Trigger.THRESHOLD and not self.fires(window):
            return None
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
