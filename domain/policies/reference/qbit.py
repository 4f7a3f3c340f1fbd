"""Answers as qbit did: messages are measured in bytes, and those with the highest scores stay."""

from dataclasses import dataclass

from ...context_limit import LevelMarks
from ...counting.estimators import QBIT_ESTIMATOR
from ...messages import Message
from ...window import Window
from ..policy import quirk
from ..scored_pruning import ScoredPruning
from ..weighed_messages import WeighedMessages


@dataclass(frozen=True)
class QbitAsShipped(ScoredPruning):
    """Protects messages, not turns; calls may leave without their results."""

    preset: str = quirk("as_shipped")

    @property
    def level_marks(self) -> LevelMarks:
        """Where the levels begin: above their share, and critical only where all is in use."""
        usual = super().level_marks
        return LevelMarks(usual.warning, usual.alert, critical=1.0, is_past=True)

    def count_in_use(self, window: Window) -> int:
        return self.weigh_window(window).total

    def weigh_window(self, window: Window) -> WeighedMessages:
        """Weigh the messages once, to say whether they are too many and then which leave."""
        return window.find_once(type(self).__name__, lambda: self.weigh(window.items))

    def count_tokens(self, message: Message) -> int:
        return QBIT_ESTIMATOR.count_message([item.block for item in message.items])

    def choose_staying(self, weighed: WeighedMessages, in_use: int, target: int) -> frozenset[int]:
        """Return what stays while there is room, the best first; one too large is skipped."""
        count, tokens = len(weighed.messages), weighed.tokens
        if in_use <= target:
            return frozenset(range(count))
        untouched = weighed.find_untouchable(max(0, count - self.protected_turns))
        others = [index for index in range(count) if index not in untouched]
        room = target - in_use + sum(tokens[index] for index in others)
        staying = set(untouched)
        if room > 0:  # without any room, even empty messages leave
            for index in sorted(others, key=weighed.priorities.__getitem__, reverse=True):
                if tokens[index] <= room:
                    room -= tokens[index]
                    staying.add(index)
        return frozenset(staying)
