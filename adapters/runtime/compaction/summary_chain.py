"""Asks one summariser after another until a draft passes the gate; the last one cannot fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from ....domain.errors import (
    CompactionCancelledError,
    RejectedSummaryError,
    SummariserFailedError,
)
from ....domain.session_events import Usage
from ....domain.summaries.extractive import Extractive
from ....domain.summaries.listing import Listing
from ....domain.summaries.notice import Notice
from ....domain.summaries.summariser import Draft, Material, Summariser
from ....domain.window import OnFailure
from .cancellation import Cancellation
from .summary_run import drafted

LONGEST_PAUSE_S = 30.0

Judge = Callable[[Draft], None]
"""Raises RejectedSummaryError where a draft may not stand for what left."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A summariser whose draft was not taken, or that brought none."""

    summariser: str
    reason: str
    rule: str | None = None
    """The gate's rule that the draft broke; None where there was no draft."""
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    """What was paid for it all the same."""
    latency_s: float | None = None
    error: str | None = None
    """The kind of error by which it brought none."""

    def __str__(self) -> str:
        return f"{self.summariser}: {f'{self.rule}: ' if self.rule else ''}{self.reason}"


@dataclass(frozen=True, slots=True)
class Written:
    """A draft that passed the gate."""

    draft: Draft
    summariser: str
    latency_s: float
    refusals: tuple[Refusal, ...]


class UnwrittenError(SummariserFailedError):
    """No summariser that was asked brought a draft that passes; says what each of them said."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__("; ".join(map(str, refusals)))
        self.refusals = tuple(refusals)


class NoListener:
    """Is told which summariser begins, whose draft was refused, and whose was taken."""

    def begins(self, summariser: str) -> None:
        """The next summariser is asked."""

    def refused(self, refusal: Refusal) -> None:
        """Its draft was not taken, or it brought none."""

    def passed(self, written: Written) -> None:
        """Its draft was taken."""


@dataclass(frozen=True)
class SummaryChain:
    """Who may write a summary, in order, and how much patience there is with each.

    `extractive` follows whoever is named, and `listing` ends the chain: they need nothing but the
    log. A plan may have it otherwise: that only a notice stands in, or nothing at all. A draft that
    the gate refuses is asked for once more, with the reason.
    """

    summarisers: tuple[Summariser, ...] = ()
    time_limit_s: float = 120.0
    """For each summariser, its retries and the pauses between them included."""
    retries: int = 3
    """How often a summariser is asked again after a failure that may pass."""
    backoff_s: float = 1.0
    """The first pause between two tries; each further one is twice as long, up to 30 s."""
    stands_in: bool = True
    """Whether `extractive` writes where all others failed; who has time tries them again later."""

    @property
    def longest_s(self) -> float:
        """Seconds after which even the slowest has written, or given up."""
        return self.time_limit_s * (len(self.summarisers) + 1)

    def written(
        self,
        material: Material,
        judge: Judge,
        cancellation: Cancellation,
        listener: NoListener | None = None,
        on_failure: OnFailure = OnFailure.EXTRACTIVE,
    ) -> Written:
        """The first draft that passes.

        Raises CompactionCancelledError, and where nobody is to stand in UnwrittenError.
        """
        listener = listener or NoListener()
        refusals: list[Refusal] = []
        for summariser in self._in_order(on_failure):
            listener.begins(summariser.name)
            began, known, written = monotonic(), len(refusals), None
            try:
                draft = self._passed(summariser, material, judge, cancellation, refusals)
            except CompactionCancelledError:
                raise
            except RejectedSummaryError:
                pass  # each of its drafts is among the refusals
            except Exception as error:  # noqa: BLE001 - users' summarisers may raise anything
                reason = _in_a_line(error)
                took = monotonic() - began
                kind = type(error).__qualname__
                refusals.append(Refusal(summariser.name, reason, latency_s=took, error=kind))
            else:
                written = Written(draft, summariser.name, monotonic() - began, tuple(refusals))
            finally:
                for refusal in refusals[known:]:
                    listener.refused(refusal)
            if written is not None:
                listener.passed(written)
                return written
            cancellation.check()
        if refusals and (on_failure is OnFailure.UNCHANGED or not self.stands_in):
            raise UnwrittenError(refusals)
        began = monotonic()
        last = Notice() if on_failure is OnFailure.NOTICE else Listing()
        listener.begins(last.name)
        draft = last.summarise(material)
        written = Written(draft, last.name, monotonic() - began, tuple(refusals))
        listener.passed(written)
        return written

    def _in_order(self, on_failure: OnFailure) -> Sequence[Summariser]:
        own = Extractive()
        others = [one for one in self.summarisers if one.name != own.name]
        if others and not self.stands_in:
            return others
        is_named = len(others) < len(self.summarisers)
        follows = not others or on_failure is OnFailure.EXTRACTIVE
        return (*self.summarisers, own) if follows and not is_named else self.summarisers

    def _passed(
        self,
        summariser: Summariser,
        material: Material,
        judge: Judge,
        cancellation: Cancellation,
        refusals: list[Refusal],
    ) -> Draft:
        """A draft that the judge lets pass, at the second attempt at the latest."""
        ends = monotonic() + self.time_limit_s
        asked = material
        while True:
            began = monotonic()
            draft = self._drafted(summariser, asked, ends, cancellation)
            try:
                judge(draft)
            except RejectedSummaryError as error:
                refusals.append(
                    Refusal(
                        summariser.name,
                        error.reason,
                        error.rule,
                        draft.model,
                        draft.usage,
                        draft.cost_usd,
                        monotonic() - began,
                    )
                )
                # Who writes by rules writes the same again.
                if asked is not material or isinstance(summariser, Extractive):
                    raise
                asked = replace(material, instructions=_corrected(material, error))
            else:
                return draft

    def _drafted(
        self, summariser: Summariser, material: Material, ends: float, cancellation: Cancellation
    ) -> Draft:
        """A draft, tried again while failures may pass and time is left."""
        pause, tries = self.backoff_s, 0
        while True:
            cancellation.check()
            try:
                return drafted(
                    summariser,
                    material,
                    time_limit_s=max(ends - monotonic(), 0.0),
                    cancellation=cancellation,
                )
            except SummariserFailedError as error:
                wait = max(min(pause, LONGEST_PAUSE_S), error.retry_after_s or 0.0)
                if not error.is_transient or tries >= self.retries:
                    raise
                if monotonic() + wait >= ends:
                    raise SummariserFailedError(
                        f"{error}; to wait {wait:g} s more would take longer than "
                        f"its {self.time_limit_s:g} seconds"
                    ) from error
            cancellation.pause(wait)
            pause, tries = 2 * pause, tries + 1


def _corrected(material: Material, error: RejectedSummaryError) -> str:
    # Not what it quotes from the draft: a tool may have put that there, and this is an instruction.
    reason = error.reason.partition(":")[0]
    refusal = f"Your last draft was refused ({error.rule}): {reason}. Write one that is not."
    return "\n".join(filter(None, (material.instructions, refusal)))


def _in_a_line(error: Exception) -> str:
    words = " ".join(str(error).split())
    return words if isinstance(error, SummariserFailedError) else f"{type(error).__name__}: {words}"
