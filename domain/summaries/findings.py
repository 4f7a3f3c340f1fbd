"""Finds what a summary can say: the user's requests and rules, what the agent did and planned."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ..blocks import AnyBlock, Block, Kind
from ..item import Item
from ..ranges import Ranges
from .actions import Action, ActionKind, read_todo_list
from .clean_text import ELLIPSIS, fold_lines, make_printable, mark_code, tidy_line
from .commands import find_targets
from .layout import FAILED_MARK, SummaryLine, SummarySection
from .memo import Memo
from .prose import Sentence, SentenceCue, count_cues, is_constraint, iter_sentences

LOW_WEIGHT = 0.1
"""The weight of a message that is hardly a request."""
# Tags of text that common agent programs insert into a user's message.
_INSERTED_TAGS = re.compile(
    r"<(system[-_]reminder|environment_\w+|INSTRUCTIONS|\w+_instructions|local-command-\w+"
    r"|command-(?:name|message|args|contents)|ide_\w+|[\w-]*hook[\w-]*|task-notification"
    r"|user_info|git_status)\b[^<>]*>"
)
_BRACKETED = re.compile(r"\[[^\[\]]*\]")
_MAX_TEXT_CHARS = 40_000
"""The middle of a longer message is not a request."""
_GLANCE = 500
_MAX_RULES = 12

_PROPOSED = re.compile(
    r"\b(?:option|alternative|proposal|suggest|recommend|pros|cons|plan)", re.IGNORECASE
)
_EMPHASIS = re.compile(r"\*\*|^#+ ")
_MAX_PROSE_CHARS, _MAX_THOUGHT_CHARS = 120_000, 30_000
_RECENT = 4
"""How many of the agent's last texts may announce next steps."""


class UserMessage(NamedTuple):
    """What a user's message says, without the text that a program inserted."""

    text: str
    """As one line."""
    is_request: bool
    is_pasted: bool
    """Whether it is long, so that its rules need not be the user's."""
    rules: tuple[str, ...]


def parse_user_message(block: AnyBlock) -> UserMessage:
    said = remove_inserted_text(block.text)
    text = tidy_line(said)
    # A line next to inserted text comes from the program as well.
    is_own = len(said) > 0.2 * min(len(block.text), _GLANCE)
    is_blank = not text.strip(f"{ELLIPSIS} ") or _BRACKETED.fullmatch(text) is not None
    return UserMessage(
        text,
        is_request=is_own and not is_blank,
        is_pasted=len(said) >= 4_000,
        rules=tuple(_iter_rules_in(said)),
    )


def iter_requests(items: Iterable[Item], memo: Memo) -> Iterator[SummaryLine]:
    """Yield what the user asked for, in the user's own words."""
    for item in items:
        if item.kind is not Kind.USER:
            continue
        message = memo.read(parse_user_message, item.block)
        if message.is_request:
            words = message.text
            is_small_talk = words.isascii() and len(words) < 30 and words.count(" ") < 4
            weight = LOW_WEIGHT if is_small_talk else 0.5
            yield _make_line(SummarySection.GOAL, words, item.position, weight, is_quote=True)


def iter_rules(
    items: Iterable[Item], goals: Iterable[SummaryLine], memo: Memo
) -> Iterator[SummaryLine]:
    """Yield the sentences in which the user stated rules, also from quoted goals."""
    for item in items:
        if item.kind is Kind.USER:
            message = memo.read(parse_user_message, item.block)
            weight = 0.45 if message.is_pasted else 0.75
            yield from (_make_rule(rule, item.position, weight) for rule in message.rules)
    for line in goals:
        if line.is_quote:
            yield from (_make_rule(rule, line.newest, 0.6) for rule in _iter_rules_in(line.text))


def _iter_rules_in(text: str) -> Iterator[str]:
    sentences = (sentence.text for sentence in iter_sentences(text))
    rules = (words for words in sentences if len(words) < 600 and is_constraint(words))
    for rule in islice(rules, _MAX_RULES):
        words = tidy_line(rule).strip(f"{ELLIPSIS} ")
        if words and ELLIPSIS not in words and not words.endswith(":"):
            yield words


def _make_rule(rule: str, position: int, weight: float) -> SummaryLine:
    asked = 0.3 if rule.endswith("?") else 0.0
    weight -= asked
    return _make_line(SummarySection.CONSTRAINTS, rule, position, weight, is_quote=True)


def _make_line(
    section: SummarySection, text: str, position: int, weight: float, *, is_quote: bool = False
) -> SummaryLine:
    return SummaryLine(section, text, Ranges.of([position]), weight, is_quote)


def remove_inserted_text(text: str) -> str:
    """Return a user's message without the text that a program inserted."""
    text = make_printable(text)
    if len(text) > _MAX_TEXT_CHARS:
        text = f"{text[: _MAX_TEXT_CHARS // 2]} {ELLIPSIS} {text[-_MAX_TEXT_CHARS // 2 :]}"
    pieces: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for tag in _INSERTED_TAGS.finditer(text):
        if tag.start() < at or tag[1] in unclosed:
            continue
        closing = f"</{tag[1]}>"
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        pieces.append(text[at : tag.start()])
        at = end + len(closing)
    return f" {ELLIPSIS} ".join([*pieces, text[at:]]).strip(f"{ELLIPSIS} \t\r\n")


def is_resolved(line: SummaryLine, actions: Iterable[Action]) -> bool:
    """Check whether a failure in an earlier summary was overcome since."""
    noun, failed, _ = line.text.partition(FAILED_MARK)
    target = find_targets(noun.strip("`"))[-1:]
    return bool(failed) and any(
        not action.is_failure and (action.noun == noun or {*target} & {*action.targets})
        for action in actions
    )


def iter_progress(actions: Sequence[Action]) -> Iterator[SummaryLine]:
    """Yield what calls did, once however often, and their failures without a later success."""
    newest = max((action.position for action in actions), default=1)
    done: dict[str, list[Action]] = {}
    over: dict[str, int] = {}
    for action in actions:
        if not action.is_failure:
            over |= dict.fromkeys(action.targets, action.position)
            if action.kind is not ActionKind.LOOK:
                done.setdefault(action.label, []).append(action)
    for label, times in done.items():
        last = times[-1]
        handles = Ranges.of(action.position for action in times)
        weight = {ActionKind.EDIT: 0.35, ActionKind.RUN: 0.25, ActionKind.CALL: 0.3}[last.kind]
        weight += 0.3 * last.position / newest
        if last.outcome:
            # The newest result is the valid one.
            handles, weight = Ranges.of([last.position]), weight + 0.2
        is_repeated = last.kind is ActionKind.EDIT and len(times) > 1
        text = f"{label} x{len(times)}" if is_repeated else label
        text = f"{text}: {last.outcome}" if last.outcome else text
        yield SummaryLine(SummarySection.DONE, text, handles, weight)
    for action in actions:
        is_over = over.get(action.targets[-1], 0) >= action.position
        if action.is_failure and action.kind is not ActionKind.LOOK and not is_over:
            weight = 0.4 + 0.4 * action.position / newest
            text = f"{action.noun}{FAILED_MARK}{action.outcome}"
            yield _make_line(SummarySection.BLOCKED, text, action.position, weight)


def iter_plans(items: Sequence[Item]) -> Iterator[SummaryLine]:
    """Yield the open entries of the agent's to-do list."""
    for task in read_todo_list(items):
        if not task.is_done:
            section = SummarySection.IN_PROGRESS if task.is_started else SummarySection.NEXT
            yield _make_line(section, task.text, task.position, 0.9)


def iter_remarks(items: Sequence[Item], memo: Memo) -> Iterator[SummaryLine]:
    """Yield what the agent wrote that it did, decided, found out and would do next."""
    texts = _list_agent_texts(items)
    # Some agents only think.
    voice = Kind.ASSISTANT if any(i.kind is Kind.ASSISTANT for i in texts) else Kind.THINKING
    spoken = [item.position for item in texts if item.kind is voice]
    recent, last_said = frozenset(spoken[-_RECENT:]), max(spoken, default=0)
    # The agent's last text in each turn states the outcome.
    conclusions = {item.turn: item.position for item in items if item.kind is Kind.ASSISTANT}
    concluding = frozenset(conclusions.values())
    first, last = (items[0].position, items[-1].position) if items else (0, 0)
    for item in texts:
        age = (last - item.position) / (last - first + 1)
        bonus = 0.25 * (1 - age) + 0.15 * (item.position in concluding)
        for sentence in memo.read(_list_sentences, item.block):
            found = _classify_sentence(
                sentence,
                is_spoken=item.kind is voice,
                is_recent=item.position in recent,
                is_last=item.position == last_said,
            )
            if found is not None:
                section, weight = found
                yield _make_line(section, sentence.text, item.position, weight + bonus)


class _QuotableSentence(NamedTuple):
    text: str
    cues: Mapping[SentenceCue, int]
    heading: str
    is_telling: bool
    """Whether it is prose, and long enough to be quoted alone."""


def _list_sentences(block: AnyBlock) -> tuple[_QuotableSentence, ...]:
    """Return the sentences of a block that a summary could quote."""
    return tuple(filter(None, map(_make_quotable, iter_sentences(make_printable(block.text)))))


def _make_quotable(sentence: Sentence) -> _QuotableSentence | None:
    text = tidy_line(_EMPHASIS.sub("", sentence.text))
    found = count_cues(sentence)
    length = len(text)
    if not 12 <= length <= 700 or (text.endswith(":") and SentenceCue.INTENT not in found):
        return None
    is_prose = text.count(" ") > 4 or not text.isascii()
    is_telling = length > 40 and is_prose and not _is_code(text)
    return _QuotableSentence(text, found, sentence.heading, is_telling)


def _classify_sentence(
    sentence: _QuotableSentence, *, is_spoken: bool, is_recent: bool, is_last: bool
) -> tuple[SummarySection, float] | None:
    """Return the section and the weight of a sentence; None if it is not worth a line."""
    cues = sentence.cues
    if SentenceCue.INTENT in cues:
        return (SummarySection.IN_PROGRESS, 0.4) if is_last else None
    if sentence.text.endswith("?") and not is_last:
        return None
    if SentenceCue.NEXT in cues and is_recent and is_spoken:
        return SummarySection.NEXT, 0.3 + 0.1 * min(cues[SentenceCue.NEXT], 3)
    if SentenceCue.DECISION in cues and len(sentence.text) > 30:
        weight = 0.3 + 0.1 * min(cues[SentenceCue.DECISION], 3) - (0 if is_spoken else 0.15)
        return SummarySection.DECISIONS, weight
    if SentenceCue.DONE in cues and is_spoken and not _PROPOSED.search(sentence.heading):
        return SummarySection.DONE, 0.3 + 0.08 * min(cues[SentenceCue.DONE], 3)
    if sentence.is_telling:
        return SummarySection.CONTEXT, 0.1 if is_spoken else 0.0
    return None


def classify_statement(sentence: Sentence) -> SummarySection:
    """Return the section of an agent's sentence that is quoted for what it says."""
    cues = count_cues(sentence)
    if SentenceCue.DECISION in cues:
        return SummarySection.DECISIONS
    if SentenceCue.DONE in cues and not _PROPOSED.search(sentence.heading):
        return SummarySection.DONE
    return SummarySection.CONTEXT


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


def iter_media(items: Iterable[Item]) -> Iterator[SummaryLine]:
    """Yield lines with handles for images and documents, which text cannot replace."""
    for item in items:
        if isinstance(item.block, Block) and item.kind in {Kind.IMAGE, Kind.DOCUMENT}:
            name = fold_lines(item.block.name or (item.block.media and item.block.media.name) or "")
            text = f"{item.kind} {mark_code(name)}" if name else str(item.kind)
            yield _make_line(SummarySection.CONTEXT, text, item.position, 0.6)
