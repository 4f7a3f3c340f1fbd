"""Finds what could be said of the agent: its deeds and troubles, its reasons and its plans."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...blocks import AnyBlock, Block, Kind
from ...item import Item
from ...ranges import Ranges
from .actions import Action, Deed
from .commands import targets_of
from .once_per_block import OncePerBlock
from .prose import Cue, Sentence, cues, sentences
from .sections import FAILED, Line, Section
from .todo_lists import tasks_of
from .wording import code, folded, printable, tidied

_PROPOSED = re.compile(
    r"\b(?:option|alternative|proposal|suggest|recommend|pros|cons|plan)", re.IGNORECASE
)
_EMPHASIS = re.compile(r"\*\*|^#+ ")
_MOST_PROSE, _MOST_THOUGHT = 120_000, 30_000
_RECENT = 4
"""How many of the agent's last texts may say what comes next."""


def progress_of(actions: Sequence[Action]) -> Iterator[Line]:
    """What calls did, and where they failed for good."""
    yield from _done(actions)
    yield from _blocked(actions)


def is_over(line: Line, actions: Iterable[Action]) -> bool:
    """Whether what an earlier summary says had failed was done since."""
    noun, failed, _ = line.text.partition(FAILED)
    target = targets_of(noun.strip("`"))[-1:]
    return bool(failed) and any(
        not action.is_failure and (action.noun == noun or {*target} & {*action.targets})
        for action in actions
    )


def _done(actions: Sequence[Action]) -> Iterator[Line]:
    """One line for each thing that was done, however often."""
    newest = max((action.position for action in actions), default=1)
    done: dict[str, list[Action]] = {}
    for action in actions:
        if not action.is_failure and action.deed is not Deed.LOOK:
            done.setdefault(action.label, []).append(action)
    for label, times in done.items():
        last = times[-1]
        handles = Ranges.of(action.position for action in times)
        weight = {Deed.EDIT: 0.35, Deed.RUN: 0.25, Deed.CALL: 0.3}[last.deed]
        weight += 0.3 * last.position / newest
        if last.outcome:
            # The newest result is the one that holds.
            handles, weight = last.handles, weight + 0.2
        text = f"{label} x{len(times)}" if last.deed is Deed.EDIT and len(times) > 1 else label
        text = f"{text}: {last.outcome}" if last.outcome else text
        yield Line(Section.DONE, text, handles, weight)


def _blocked(actions: Sequence[Action]) -> Iterator[Line]:
    done = (action for action in actions if not action.is_failure)
    over = {target: action.position for action in done for target in action.targets}
    newest = max((action.position for action in actions), default=1)
    for action in actions:
        if (
            action.is_failure
            and action.deed is not Deed.LOOK
            and over.get(action.targets[-1], 0) < action.position
        ):
            weight = 0.4 + 0.4 * action.position / newest
            text = f"{action.noun}{FAILED}{action.outcome}"
            yield Line(Section.BLOCKED, text, action.handles, weight)


def plans_of(items: Sequence[Item]) -> Iterator[Line]:
    """The open entries of the to-do list that the agent keeps with a tool."""
    for task in tasks_of(items):
        if not task.is_done:
            section = Section.IN_PROGRESS if task.is_begun else Section.NEXT
            yield Line(section, task.text, Ranges.of([task.position]), weight=0.9)


def remarks_of(items: Sequence[Item]) -> Iterator[Line]:
    """What the agent said that it did, decided, found out and was about to do."""
    texts = _texts(items)
    # Some agents only think.
    voice = Kind.ASSISTANT if any(i.kind is Kind.ASSISTANT for i in texts) else Kind.THINKING
    spoken = [item.position for item in texts if item.kind is voice]
    recent, last_said = frozenset(spoken[-_RECENT:]), max(spoken, default=0)
    concluding = _conclusions(items)
    first, last = (items[0].position, items[-1].position) if items else (0, 0)
    for item in texts:
        age = (last - item.position) / (last - first + 1)
        bonus = 0.25 * (1 - age) + 0.15 * (item.position in concluding)
        speech = _Speech(
            handles=Ranges.of([item.position]),
            bonus=bonus,
            is_spoken=item.kind is voice,
            is_recent=item.position in recent,
            is_last=item.position == last_said,
        )
        for said in _sentences(item.block):
            if line := _remark(said, speech):
                yield line


@dataclass(frozen=True, slots=True)
class _Speech:
    """The text that a sentence of the agent's stands in."""

    handles: Ranges
    bonus: float
    is_spoken: bool
    is_recent: bool
    is_last: bool

    def line(self, section: Section, text: str, weight: float) -> Line:
        return Line(section, text, self.handles, weight + self.bonus)


class _Said(NamedTuple):
    """A sentence of the agent's, by itself."""

    text: str
    cues: Mapping[Cue, int]
    under: str
    is_telling: bool
    """Whether it is prose, and long enough to stand for itself."""


@OncePerBlock
def _sentences(block: AnyBlock) -> tuple[_Said, ...]:
    """The sentences of a block that a summary could quote."""
    return tuple(filter(None, map(_said, sentences(printable(block.text)))))


def _said(sentence: Sentence) -> _Said | None:
    text = tidied(_EMPHASIS.sub("", sentence.text))
    found = cues(sentence)
    length = len(text)
    if not 12 <= length <= 700 or (text.endswith(":") and Cue.INTENT not in found):
        return None
    is_prose = text.count(" ") > 4 or not text.isascii()
    is_telling = length > 40 and is_prose and not _is_code(text)
    return _Said(text, found, sentence.under, is_telling)


def _remark(said: _Said, speech: _Speech) -> Line | None:
    text, found, is_spoken = said.text, said.cues, speech.is_spoken
    if Cue.INTENT in found:
        return speech.line(Section.IN_PROGRESS, text, 0.4) if speech.is_last else None
    if text.endswith("?") and not speech.is_last:
        return None
    if Cue.NEXT in found and speech.is_recent and is_spoken:
        return speech.line(Section.NEXT, text, 0.3 + 0.1 * min(found[Cue.NEXT], 3))
    if Cue.DECISION in found and len(text) > 30:
        weight = 0.3 + 0.1 * min(found[Cue.DECISION], 3) - (0 if is_spoken else 0.15)
        return speech.line(Section.DECISIONS, text, weight)
    if Cue.DONE in found and is_spoken and not _PROPOSED.search(said.under):
        return speech.line(Section.DONE, text, 0.3 + 0.08 * min(found[Cue.DONE], 3))
    if said.is_telling:
        return speech.line(Section.CONTEXT, text, 0.1 if is_spoken else 0.0)
    return None


def _is_code(text: str) -> bool:
    """Whether a sentence is none: models think in code without marking it as such."""
    letters = sum(map(str.isalpha, text)) + text.count(" ")
    return "```" in text or letters < 0.72 * len(text)


def _texts(items: Sequence[Item]) -> list[Item]:
    """What the agent said and thought; of a long history what it said and thought last."""
    room = {Kind.ASSISTANT: _MOST_PROSE, Kind.THINKING: _MOST_THOUGHT}
    kept: list[Item] = []
    for item in reversed(items):
        kind = item.kind
        if kind in room and room[kind] > 0:
            room[kind] -= len(item.block.text)
            kept.append(item)
    return kept[::-1]


def _conclusions(items: Sequence[Item]) -> frozenset[int]:
    """The agent's last text of each turn, where it says what came of it."""
    last: dict[int, int] = {}
    for item in items:
        if item.kind is Kind.ASSISTANT:
            last[item.turn] = item.position
    return frozenset(last.values())


def media_of(items: Iterable[Item]) -> Iterator[Line]:
    """Images and documents, which no words can stand for; their handles bring them back."""
    for item in items:
        if isinstance(item.block, Block) and item.kind in {Kind.IMAGE, Kind.DOCUMENT}:
            name = folded(item.block.name or (item.block.media and item.block.media.name) or "")
            text = f"{item.kind} {code(name)}" if name else str(item.kind)
            yield Line(Section.CONTEXT, text, Ranges.of([item.position]), weight=0.6)
