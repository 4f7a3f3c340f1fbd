"""Writes a replay's summaries, by the rules by which they are written live, and with no clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import cast

from ...domain.errors import RejectedSummaryError, SummariserFailedError
from ...domain.summaries.extractive import Extractive
from ...domain.summaries.gate import check
from ...domain.summaries.listing import Listing
from ...domain.summaries.notice import Notice
from ...domain.summaries.summariser import Draft, Material, Summariser
from ...domain.window import OnFailure
from ..planned import Planned, standing

UserTexts = Callable[[Draft, Material], Iterable[str]]
"""What users said of what a draft may quote."""


@dataclass(frozen=True, slots=True)
class Written:
    """A draft, who wrote it, and whose drafts were not taken before."""

    draft: Draft
    summariser: str
    refused: tuple[str, ...] = ()


class UnwrittenError(SummariserFailedError):
    """No summary can be had, and the policy wants none to stand in."""


@dataclass(frozen=True)
class Writers:
    """Who may write, in order; after them whoever stands in live.

    A draft has to pass the same gate. None of them may wait for anybody: one that asks a model
    takes its answer from where it was kept.
    """

    summarisers: tuple[Summariser, ...] = ()
    budget: int | None = None
    """Tokens that each summary may take, whatever the policy allows; None leaves it to that."""

    def written(self, planned: Planned, user_texts: UserTexts) -> Written:
        """The first draft that passes; raises UnwrittenError where nobody is to stand in."""
        material = planned.material
        if not material.gone:
            return Written(*standing(planned))
        if not planned.plan.summary_tokens:
            notice = Notice()
            return Written(notice.summarise(material), notice.name)
        if self.budget is not None:
            material = replace(material, budget=self.budget, turn_budget=0)
        refused: list[str] = []
        on_failure = planned.plan.on_failure
        for summariser in self._in_order(on_failure):
            try:
                # A replay asks nobody that has to be awaited.
                draft = cast(Draft, summariser.summarise(material))
                check(draft, material, user_texts=user_texts(draft, material))
            except (RejectedSummaryError, SummariserFailedError) as error:
                refused.append(f"{summariser.name}: {error}")
            else:
                return Written(draft, summariser.name, tuple(refused))
        if refused and on_failure is OnFailure.UNCHANGED:
            raise UnwrittenError("; ".join(refused))
        last = Notice() if on_failure is OnFailure.NOTICE else Listing()
        return Written(last.summarise(material), last.name, tuple(refused))

    def _in_order(self, on_failure: OnFailure) -> tuple[Summariser, ...]:
        own = Extractive()
        if not self.summarisers:
            return (own,)
        if on_failure is OnFailure.EXTRACTIVE and all(
            one.name != own.name for one in self.summarisers
        ):
            return (*self.summarisers, own)
        return self.summarisers
