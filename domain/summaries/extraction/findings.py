"""Finds what a summary can say about the agent: its actions, failures, decisions and plans."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...blocks import AnyBlock, Block, Kind
from ...item import Item
from ...ranges import Ranges
from .actions import Action, ActionKind
from .block_cache import CachedPerBlock
from .clean_text import fold_lines, make_printable, mark_code, tidy_line
from .commands import find_targets
from .prose import Sentence, SentenceCue, count_cues, split_sentences
from .sections import FAILED_MARK, SummaryLine, SummarySection
from .todo_lists import read_todo_list

_PROPOSED = re.compile(
    r"\b(?:option|alternative|proposal|suggest|recommend|pros|cons|plan)", re.IGNORECASE
)
_EMPHASIS = re.compile(r"\*\*|^#+ ")
_MAX_PROSE_CHARS, _MAX_THOUGHT_CHARS = 120_000, 30_000
_RECENT = 4
"""How many of the agent's last texts may announce next steps."""


def iter_progress(actions: Sequence[Action]) -> Iterator[SummaryLine]:
    """Yield what calls did, and their failures without a later success."""
    yield from _iter_done(actions)
    yield from _iter_blocked(actions)


def is_resolved(line: SummaryLine, actions: Iterable[Action]) -> bool:
    """Check whether a failure in an earlier summary was overcome since."""
    noun, failed, _ = line.text.partition(FAILED_MARK)
    target = find_targets(noun.strip("`"))[-1:]
    return bool(failed) and any(
        not action.is_failure and (action.noun == noun or {*target} & {*action.targets})
        for action in actions
    )


def _iter_done(actions: Sequence[Action]) -> Iterator[SummaryLine]:
    """Yield one line for each thing that was done, however often."""
    newest = max((action.position for action in actions), default=1)
    done: dict[str, list[Action]] = {}
    for action in actions:
        if not action.is_failure and action.kind is not ActionKind.LOOK:
            done.setdefault(action.label, []).append(action)
    for label, times in done.items():
        last = times[-1]
        handles = Ranges.of(action.position for action in times)
        weight = {ActionKind.EDIT: 0.35, ActionKind.RUN: 0.25, ActionKind.CALL: 0.3}[last.kind]
        weight += 0.3 * last.position / newest
        if last.outcome:
            # The newest result is the valid one.
            handles, weight = last.handles, weight + 0.2
        text = (
            f"{label} x{len(times)}" if last.kind is ActionKind.EDIT and len(times) > 1 else label
        )
        text = f"{text}: {last.outcome}" if last.outcome else text
        yield SummaryLine(SummarySection.DONE, text, handles, weight)


def _iter_blocked(actions: Sequence[Action]) -> Iterator[SummaryLine]:
    done = (action for action in actions if not action.is_failure)
    over = {target: action.position for action in done for target in action.targets}
    newest = max((action.position for action in actions), default=1)
    for action in actions:
        if (
            action.is_failure
            and action.kind is not ActionKind.LOOK
            and over.get(action.targets[-1], 0) < action.position
        ):
            weight = 0.4 + 0.4 * action.position / newest
            text = f"{action.noun}{FAILED_MARK}{action.outcome}"
            yield SummaryLine(SummarySection.BLOCKED, text, action.handles, weight)


def iter_plans(items: Sequence[Item]) -> Iterator[SummaryLine]:
    """Yield the open entries of the agent's to-do list."""
    for task in read_todo_list(items):
        if not task.is_done:
            section = SummarySection.IN_PROGRESS if task.is_started else SummarySection.NEXT
            yield SummaryLine(section, task.text, Ranges.of([task.position]), weight=0.9)


def iter_remarks(items: Sequence[Item]) -> Iterator[SummaryLine]:
    """Yield what the agent wrote that it did, decided, found out and would do next."""
    texts = _list_agent_texts(items)
    # Some agents only think.
    voice = Kind.ASSISTANT if any(i.kind is Kind.ASSISTANT for i in texts) else Kind.THINKING
    spoken = [item.position for item in texts if item.kind is voice]
    recent, last_said = frozenset(spoken[-_RECENT:]), max(spoken, default=0)
    concluding = _find_conclusions(items)
    first, last = (items[0].position, items[-1].position) if items else (0, 0)
    for item in texts:
        age = (last - item.position) / (last - first + 1)
        bonus = 0.25 * (1 - age) + 0.15 * (item.position in concluding)
        speech = _SourceText(
            handles=Ranges.of([item.position]),
            bonus=bonus,
            is_spoken=item.kind is voice,
            is_recent=item.position in recent,
            is_last=item.position == last_said,
        )
        for said in _list_sentences(item.block):
            if line := _make_remark(said, speech):
                yield line


@dataclass(frozen=True, slots=True)
class _SourceText:
    """The text that contains a sentence of the agent."""

    handles: Ranges
    bonus: float
    is_spoken: bool
    is_recent: bool
    is_last: bool

    def make_line(self, section: SummarySection, text: str, weight: float) -> SummaryLine:
        return SummaryLine(section, text, self.handles, weight + self.bonus)


class _QuotableSentence(NamedTuple):
    text: str
    cues: Mapping[SentenceCue, int]
    heading: str
    is_telling: bool
    """Whether it is prose, and long enough to be quoted alone."""


@CachedPerBlock
def _list_sentences(block: AnyBlock) -> tuple[_QuotableSentence, ...]:
    """Return the sentences of a block that a summary could quote."""
    return tuple(filter(None, map(_make_quotable, split_sentences(make_printable(block.text)))))


def _make_quotable(sentence: Sentence) -> _QuotableSentence | None:
    text = tidy_line(_EMPHASIS.sub("", sentence.text))
    found = count_cues(sentence)
    length = len(text)
    if not 12 <= length <= 700 or (text.endswith(":") and SentenceCue.INTENT not in found):
        return None
    is_prose = text.count(" ") > 4 or not text.isascii()
    is_telling = length > 40 and is_prose and not _is_code(text)
    return _QuotableSentence(text, found, sentence.heading, is_telling)


def _make_remark(said: _QuotableSentence, speech: _SourceText) -> SummaryLine | None:
    text, found, is_spoken = said.text, said.cues, speech.is_spoken
    if SentenceCue.INTENT in found:
        return speech.make_line(SummarySection.IN_PROGRESS, text, 0.4) if speech.is_last else None
    if text.endswith("?") and not speech.is_last:
        return None
    if SentenceCue.NEXT in found and speech.is_recent and is_spoken:
        return speech.make_line(
            SummarySection.NEXT, text, 0.3 + 0.1 * min(found[SentenceCue.NEXT], 3)
        )
    if SentenceCue.DECISION in found and len(text) > 30:
        weight = 0.3 + 0.1 * min(found[SentenceCue.DECISION], 3) - (0 if is_spoken else 0.15)
        return speech.make_line(SummarySection.DECISIONS, text, weight)
    if SentenceCue.DONE in found and is_spoken and not _PROPOSED.search(said.heading):
        return speech.make_line(
            SummarySection.DONE, text, 0.3 + 0.08 * min(found[SentenceCue.DONE], 3)
        )
    if said.is_telling:
        return speech.make_line(SummarySection.CONTEXT, text, 0.1 if is_spoken else 0.0)
    return None


def _is_code(text: str) -> bool:
    """Check for code, which models write in their thinking without marking it."""
    letters = sum(map(str.isalpha, text)) + text.count(" ")
    return "```" in text or letters < 0.72 * len(text)


def _list_agent_texts(items: Sequence[Item]) -> list[Item]:
    """Return the agent's messages and thinking; of a long history, the last ones."""
    room = {Kind.ASSISTANT: _MAX_PROSE_CHARS, Kind.THINKING: _MAX_THOUGHT_CHARS}
    kept: list[Item] = []
    for item in reversed(items):
        kind = item.kind
        if kind in room and room[kind] > 0:
            room[kind] -= len(item.block.text)
            kept.append(item)
    return kept[::-1]


def _find_conclusions(items: Sequence[Item]) -> frozenset[int]:
    """Return the positions of the agent's last text in each turn, which states the outcome."""
    last: dict[int, int] = {}
    for item in items:
        if item.kind is Kind.ASSISTANT:
            last[item.turn] = item.position
    return frozenset(last.values())


def iter_media(items: Iterable[Item]) -> Iterator[SummaryLine]:
    """Yield lines with handles for images and documents, which text cannot replace."""
    for item in items:
        if isinstance(item.block, Block) and item.kind in {Kind.IMAGE, Kind.DOCUMENT}:
            name = fold_lines(item.block.name or (item.block.media and item.block.media.name) or "")
            text = f"{item.kind} {mark_code(name)}" if name else str(item.kind)
            yield SummaryLine(SummarySection.CONTEXT, text, Ranges.of([item.position]), weight=0.6)
