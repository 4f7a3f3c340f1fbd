"""What the settings make of every compaction, whichever policy decides: as in an agent's loop."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...domain.models import ModelFacts
from ...domain.pins import PinRules
from ...domain.policies.policy import Policy
from ...domain.terms import Terms

if TYPE_CHECKING:
    from ..settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Rules:
    """What goes with a policy into each replay."""

    pins: PinRules = PinRules()
    minimum_gain: float = 0.0
    expected_calls: int = 20
    must_pay: bool = False
    instructions: str | None = None

    @classmethod
    def of(cls, settings: "Settings") -> "Rules":
        compaction = settings.compaction
        return cls(
            pins=settings.pins.rules(),
            minimum_gain=compaction.minimum_gain,
            expected_calls=compaction.expected_calls,
            must_pay=compaction.worthwhile == "price",
            instructions=compaction.instructions,
        )

    def terms(self, policy: Policy, limit: int, facts: ModelFacts | None) -> Terms:
        return Terms(
            policy,
            limit=limit,
            instructions=self.instructions,
            pins=self.pins,
            minimum_gain=self.minimum_gain,
            prices=facts,
            expected_calls=self.expected_calls,
            must_pay=self.must_pay and facts is not None and bool(facts.prices),
        )
