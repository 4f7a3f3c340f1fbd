"""An audit in lines for people: the story of a session, and one call with its request."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ....domain.blocks import NOT_SENT
from ....domain.compaction_events import CompactBoundary
from ....domain.coverage import Fate
from ....domain.session_events import ModelCalled, TurnStarted
from ....projections.audit.happenings import BlockSaid, Decided, Happening, ModelAsked, Recorded
from ....projections.audit.shown import Proof, Shown
from ....projections.read_models.moments import moment
from ...analysis.auditing.audit import Audit
from ...analysis.auditing.audited_call import AuditedCall, size_of_call
from .block_lines import heading
from .coordinates import coordinate, written
from .event_words import Counts, boundary_in_words, in_words
from .printing import clipped, counted, say, say_json
from .session_lines import say_view

INDENT = "    "
EXCERPT = 100
"""Characters of a line that stands for a longer text."""


def say_story(audit: Audit, story: Iterable[Happening], *, brief: bool) -> Counter[Proof]:
    """All that happened, in order; returns how many calls there were of each proof."""
    _say_session(audit)
    proofs = Counter[Proof]()
    for happening in story:
        match happening:
            case BlockSaid():
                _say_block(happening, audit.compactions, brief=brief)
            case ModelAsked():
                proofs[happening.shown.proof] += 1
                _say_call(happening, audit, brief=brief)
            case Recorded(event=TurnStarted(turn=turn)):
                say(f"\nturn {turn}", bold=True)
            case Recorded(position=position, event=event):
                say(f"#{position} {clipped(in_words(event, audit.compactions), EXCERPT)}")
            case Decided(event=CompactBoundary() as boundary):
                sizes = audit.sizes[boundary.originator_version]
                said = boundary_in_words(boundary, sizes, audit.compactions)
                say(f"== {said} ==", bold=True)
            case Decided(event=event):
                say(f"== {in_words(event, audit.compactions)} ==", bold=True)
    told = ", ".join(f"{number:,} {proof}" for proof, number in proofs.items())
    say(f"\n{counted(proofs.total(), 'call')}" + (f": {told}" if told else ""))
    return proofs


def say_call(call: AuditedCall, compaction: int | None, form: str | None) -> None:
    """What is known of one call, whose view began at `compaction`, and then its request as JSON."""
    name = f"call {call.number}" if call.number else "the call"
    say(f"{name} saw {_seen(call)}: {sized(call.shown, call.reported, compaction)}", bold=True)
    for line in _reports(call.reported, call.answer):
        say(line)
    say(verdict(call.shown))
    if call.view is None:
        return
    if form is None and not call.is_as_sent:
        say()
        say_view(call.view)
        return
    say(f"the request in the format {form or call.form}{_sent_as(call, form)}:")
    say_json(call.request(form))


def _sent_as(call: AuditedCall, form: str | None) -> str:
    if call.is_as_sent and form in {None, call.form}:
        return ", as it was sent"
    return f", which was sent as {call.sent_as}" if call.sent_as else ""


def verdict(shown: Shown) -> str:
    """`proved`, or what speaks against it."""
    return f"{shown.proof}" + (f": {shown.why}" if shown.why else "")


def sized(shown: Shown, reported: ModelCalled | None, compaction: int | None) -> str:
    """How large a view is, and which compaction it begins at."""
    begins = f", compaction {compaction}" if compaction else ""
    return f"{counted(shown.blocks, 'block')}, {size_of_call(reported, shown.tokens)}{begins}"


def _seen(call: AuditedCall) -> str:
    if call.reported is not None:
        return written(call.reported.lineage, call.reported.lineage_version, call.sees)
    return coordinate(call.view.coordinate) if call.view else f"#{call.sees}"


def _say_session(audit: Audit) -> None:
    session = audit.session
    title = f" - {session.log.title}" if session.log.title else ""
    say(f"{session.key}{title}", bold=True)
    say(
        f"{counted(audit.turns, 'turn')}, {counted(audit.blocks, 'block')},"
        f" {counted(audit.tokens, 'token')} estimated; fates as of {coordinate(audit.coordinate)}"
    )


def _say_block(said: BlockSaid, counts: Counts, *, brief: bool) -> None:
    top = heading(said.position, said.block, _marks(said, counts), said.tokens)
    if brief:
        say(f"{top}  {clipped(said.block.text, max(20, EXCERPT - len(top)))}")
    else:
        say(top, bold=True)
        when = f"{moment(said.at)}  " if said.at else ""
        say(f"{INDENT}{when}{clipped(said.block.text, EXCERPT)}")


def _marks(said: BlockSaid, counts: Counts) -> Iterator[str]:
    became = said.became
    since = f" since #{became.since}" if became.since else ""
    by = f" by compaction {counts[became.boundary]}" if became.boundary else ""
    match became.fate:
        case None:
            yield "lost to the view, run `cutbank verify`"
        case Fate.RETRACTED:
            yield f"retracted{since}"
        case _ if said.block.kind in NOT_SENT:
            yield "never sent"
        case Fate.VISIBLE:
            if became.since:
                yield f"visible again{since}"
        case fate:
            yield f"{fate}{by}{since}"
    if said.ends is not None:
        yield "shown shortened from the first on"
    if said.is_open:
        yield "open"
    if getattr(said.block, "is_error", False):
        yield "error"


def _say_call(asked: ModelAsked, audit: Audit, *, brief: bool) -> None:
    at = written(asked.lineage, asked.lineage_version, asked.placed.sees)
    compaction = audit.compactions_of(asked.lineage).get(asked.shown.boundary or 0)
    size = sized(asked.shown, asked.reported, compaction)
    say(f"-- call {asked.number} saw {at}: {size}; {verdict(asked.shown)} --")
    if not brief:
        for line in _reports(asked.reported, asked.placed.answer):
            say(INDENT + line)


def _reports(reported: ModelCalled | None, answer: Iterable[int]) -> Iterator[str]:
    """What was recorded of a call, a line each that says something."""
    written = " ".join(f"#{position}" for position in answer)
    if written:
        yield f"answered by {written}"
    if reported is None:
        yield "nothing was recorded of the call but its answer"
        return
    usage = reported.usage.model_dump() if reported.usage else {}
    parts = [reported.model] if reported.model else []
    parts += [f"{name} {tokens:,}" for name, tokens in usage.items() if tokens is not None]
    parts += [f"${reported.cost_usd:.4f}"] if reported.cost_usd is not None else []
    parts += [f"{reported.latency_s:.1f} s"] if reported.latency_s is not None else []
    parts += [f"ended by {reported.stop_reason}"] if reported.stop_reason else []
    parts += [f"sent as {reported.renderer}"] if reported.renderer else []
    parts.append(f"recorded at #{reported.originator_version}")
    yield ", ".join(parts)
