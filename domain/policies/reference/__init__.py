"""Copies of what the original programs do where the policies, by their settings, follow them."""

from collections.abc import Mapping

from ..pi import Pi
from ..policy import Policy
from ..preserve_zone import PreserveZone
from ..reserve_headroom import ReserveHeadroom
from ..retention_window import RetentionWindow
from ..rolling_timeline import RollingTimeline
from ..scored_pruning import ScoredPruning
from .claude_sdk import GoatAsShipped
from .kdcube import KdcubeAsShipped
from .klaude_code import KlaudeAsShipped, KlaudeLater
from .pi_mono import PiAsShipped
from .qbit import QbitAsShipped
from .tunacode import TunacodeAsShipped, TunacodeLater

ORIGINALS: Mapping[tuple[type[Policy], str], type[Policy]] = {
    (ReserveHeadroom, "as_shipped"): KlaudeAsShipped,
    (ReserveHeadroom, "later"): KlaudeLater,
    (RollingTimeline, "as_shipped"): KdcubeAsShipped,
    (ScoredPruning, "as_shipped"): QbitAsShipped,
    (RetentionWindow, "as_shipped"): TunacodeAsShipped,
    (RetentionWindow, "later"): TunacodeLater,
    (PreserveZone, "as_shipped"): GoatAsShipped,
    (Pi, "as_shipped"): PiAsShipped,
}
