"""Finds what a summary could say: requests and rules, deeds and troubles, reasons and plans."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ..blocks import Block, Kind
from ..ranges import Ranges
from ..window import Item
from .actions import Action, Deed
from .commands import targets_of
from .prose import Cue, Sentence, cues, is_constraint, sentences
from .sections import FAILED, Line, Section
from .todo_lists import tasks_of
from .wording import ELLIPSIS, code, folded, printable, tidied

# What programs put into a person's message, by the names that the usual agents give it.
_INSERTED = re.compile(
    r"<(system[-_]reminder|environment_\w+|INSTRUCTIONS|\w+_instructions|local-command-\w+"
    r"|command-(?:name|message|args|contents)|ide_\w+|[\w-]*hook[\w-]*|task-notification"
    r"|user_info|git_status)\b[^<>]*>"
)
_BRACKETED = re.compile(r"\[[^\[\]]*\]")
_PROPOSED = re.compile(
    r"\b(?:option|alternative|proposal|suggest|recommend|pros|cons|plan)", re.IGNORECASE
)
_EMPHASIS = re.compile(r"\*\*|^#+ ")
WEAK = 0.1
"""What a request weighs that is hardly one."""
_LONGEST = 40_000
_GLANCE = 500
_MOST_PROSE, _MOST_THOUGHT = 120_000, 30_000
_MOST_RULES = 12
_RECENT = 4
"""How many of the agent's last texts may say what comes next."""


def requests_of(items: Iterable[Item]) -> Iterator[Line]:
    """What the user asked for, in the user's own words."""
    for item in items:
        if item.kind is not Kind.USER:
            continue
        said = said_by_user(item.block.text)
        words = tidied(said)
        if not words.strip(ELLIPSIS + " ") or _BRACKETED.fullmatch(words):
            continue
        # A line above or below what a program inserted is the program's too.
        if len(said) > 0.2 * min(len(item.block.text), _GLANCE):
            weight = WEAK if is_small_talk(words) else 0.5
            yield _quote(Section.GOAL, words, item.position, weight)


def rules_of(items: Iterable[Item], goals: Iterable[Line]) -> Iterator[Line]:
    """The sentences in which the user said how things must be; also those of quoted goals."""
    for item in items:
        if item.kind is Kind.USER:
            said = said_by_user(item.block.text)
            # A long text was pasted: what must be in it need not be the user's wish.
            yield from _rules(said, item.position, 0.75 if len(said) < 4_000 else 0.45)
    for line in goals:
        if line.is_quote:
            yield from _rules(line.text, line.newest, 0.6)


def _rules(said: str, position: int, weight: float) -> Iterator[Line]:
    found = (s.text for s in sentences(said) if is_constraint(s.text) and len(s.text) < 600)
    for text in islice(found, _MOST_RULES):
        words = tidied(text).strip(f"{ELLIPSIS} ")
        if words and ELLIPSIS not in words and not words.endswith(":"):
            asked = 0.3 if words.endswith("?") else 0.0
            yield _quote(Section.CONSTRAINTS, words, position, weight - asked)


def said_by_user(text: str) -> str:
    """A user's message without what a program put into it."""
    text = printable(text)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} {ELLIPSIS} {text[-_LONGEST // 2 :]}"
    return _without_inserted(text).strip(f"{ELLIPSIS} \t\r\n")


def _without_inserted(text: str) -> str:
    said: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _INSERTED.finditer(text):
        if tag.start() < at or tag[1] in unclosed:
            continue
        closing = f"</{tag[1]}>"
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        said.append(text[at : tag.start()])
        at = end + len(closing)
    return f" {ELLIPSIS} ".join([*said, text[at:]])


def is_small_talk(words: str) -> bool:
    """Whether a message says too little to be understood without what it answers."""
    return words.isascii() and len(words) < 30 and words.count(" ") < 4


def _quote(section: Section, words: str, position: int, weight: float) -> Line:
    return Line(section, words, Ranges.of([position]), weight, is_quote=True)


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
        for sentence in sentences(printable(item.block.text)):
            line = _remark(
                sentence,
                item.position,
                said=item.kind is voice,
                is_recent=item.position in recent,
                is_last=item.position == last_said,
            )
            if line:
                yield replace(line, weight=line.weight + bonus)


def _remark(
    sentence: Sentence, position: int, *, said: bool, is_recent: bool, is_last: bool
) -> Line | None:
    text = tidied(_EMPHASIS.sub("", sentence.text))
    found = cues(sentence)
    length = len(text)
    at = Ranges.of([position])
    if not 12 <= length <= 700 or (text.endswith(":") and Cue.INTENT not in found):
        return None
    if Cue.INTENT in found:
        return Line(Section.IN_PROGRESS, text, at, 0.4) if is_last else None
    if Cue.NEXT in found and is_recent and said:
        return Line(Section.NEXT, text, at, 0.3 + 0.1 * min(found[Cue.NEXT], 3))
    if text.endswith("?"):
        return None
    if Cue.DECISION in found and length > 30:
        weight = 0.3 + 0.1 * min(found[Cue.DECISION], 3) - (0 if said else 0.15)
        return Line(Section.DECISIONS, text, at, weight)
    if Cue.DONE in found and said and not _PROPOSED.search(sentence.under):
        return Line(Section.DONE, text, at, 0.3 + 0.08 * min(found[Cue.DONE], 3))
    if length > 40 and text.count(" ") > 4 and not _is_code(text):
        return Line(Section.CONTEXT, text, at, 0.1 if said else 0.0)
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
            text = f"{item.kind} {code(name)}" if name else f"an {item.kind}"
            text = text if name or item.kind is Kind.IMAGE else f"a {item.kind}"
            yield Line(Section.CONTEXT, text, Ranges.of([item.position]), weight=0.6)
