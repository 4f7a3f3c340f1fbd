"""Finds what a summary says by rule: the user's requests and rules, progress, and next steps."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..blocks import ASSISTANT_KINDS, AnyBlock, Block, BlockKind, ToolCall
from ..digest import map_results_by_call
from ..item import WindowItem
from ..ranges import Ranges
from .actions import Action, ActionKind, iter_actions, read_todo_list
from .clean_text import fold_lines, make_printable, mark_code, tidy_line
from .commands import find_targets, read_repository, uses_git
from .layout import (
    FAILED_MARK,
    PROGRESS_SECTIONS,
    SummaryLine,
    SummarySection,
    find_root,
    merge_lines,
)
from .prose import (
    INTENT_PATTERN,
    LEAD_IN_PATTERN,
    Sentence,
    SentenceCue,
    count_cues,
    find_stems,
    iter_sentences,
)
from .statements import BlockReader
from .summarizer import Material
from .user_message import (
    is_pasted_line,
    iter_rules_in,
    list_project_rules,
    parse_user_message,
)

LOW_WEIGHT = 0.1
"""The weight of a message that is hardly a request."""
_PROPOSED = re.compile(
    r"\b(?:option|alternative|proposal|suggest|recommend|pros|cons|plan)", re.IGNORECASE
)
_EMPHASIS = re.compile(r"\*\*|^#+ ")
_MAX_PURPOSE_CHARS = 120
_DONE_SHARE = 0.5
"""The share of a step's words that a report repeats if the step was done."""
_RECENT = 4
"""How many of the agent's last texts may announce next steps."""


def gather_lines(
    material: Material, earlier: Sequence[SummaryLine], reader: BlockReader
) -> list[SummaryLine]:
    """Return all lines that rules find in blocks and in the last summary, by weight."""
    items = material.removed_items
    digest = material.digest
    root = find_root(items, (*digest.modified_files, *digest.read_files))
    actions = list(iter_actions(items, reader, root))
    goals = [line for line in earlier if line.section is SummarySection.GOAL]
    is_planned = bool(read_todo_list(items))
    steps = [] if is_planned else [line for line in earlier if line.section is SummarySection.NEXT]
    new = [
        *iter_rules(items, goals, reader),
        *_iter_repository(items, reader),
        *iter_progress(actions, _find_purposes(items, reader)),
        *_iter_causes(actions, items, reader),
        *iter_plans(items),
        *_iter_open_steps([*steps, *_iter_next_steps(items)], items, reader),
        *_iter_media(items),
    ]
    # What was in progress then no longer is, and a newer to-do list replaces older plans.
    past = {SummarySection.GOAL, SummarySection.NEXT}
    past |= {SummarySection.IN_PROGRESS} if new else set()
    old = [
        line
        for line in earlier
        if line.section not in past
        and not (line.section is SummarySection.BLOCKED and is_resolved(line, actions))
    ]
    lines = [
        *_weigh_goals([*goals, *iter_requests(items, reader)]),
        *(_move_to_turn(line, material.prefix) for line in merge_lines([*old, *new])),
        *_iter_turn_requests(items, material.prefix, reader),
    ]
    return sorted(lines, key=lambda line: (-line.weight, -line.newest))


def _weigh_goals(lines: Sequence[SummaryLine]) -> Iterator[SummaryLine]:
    """Yield the latest request as the goal, and earlier ones; the first and last weigh most."""
    # An earlier summary may quote one message twice; keep the longer quote.
    longest: dict[Ranges | str, SummaryLine] = {}
    for line in lines:
        key = line.handles or line.text
        longest[key] = max(longest.get(key, line), line, key=lambda line: len(line.text))
    requests = sorted(merge_lines(longest.values()), key=lambda line: line.newest)
    telling = [line for line in requests if line.weight > LOW_WEIGHT] or requests
    for number, request in enumerate(requests):
        is_latest = request is telling[-1]
        section = SummarySection.GOAL if is_latest else SummarySection.EARLIER_REQUESTS
        line = replace(request, section=section)
        if request is telling[0]:
            yield replace(line, weight=1.0)
        elif is_latest:
            yield replace(line, weight=0.95)
        elif line.weight > LOW_WEIGHT:
            yield replace(line, weight=0.4 + 0.4 * number / len(requests))
        else:
            yield line


def _move_to_turn(line: SummaryLine, prefix: Ranges) -> SummaryLine:
    """Move progress within an unfinished turn to the turn's own section."""
    # Most lines are older; their newest handle rules them out.
    if line.section in PROGRESS_SECTIONS and line.newest in prefix and not line.handles - prefix:
        return replace(line, section=SummarySection.TURN)
    return line


def _iter_turn_requests(
    items: Iterable[WindowItem], prefix: Ranges, reader: BlockReader
) -> Iterator[SummaryLine]:
    begun = iter_requests((item for item in items if item.position in prefix), reader)
    if first := next(begun, None):
        yield replace(first, section=SummarySection.TURN, weight=0.85)


def iter_requests(items: Iterable[WindowItem], reader: BlockReader) -> Iterator[SummaryLine]:
    """Yield what the user asked for, in the user's own words."""
    for item in items:
        if item.kind is not BlockKind.USER:
            continue
        message = reader.read_once(parse_user_message, item.block)
        if message.is_request:
            words = message.text
            is_small_talk = words.isascii() and len(words) < 30 and words.count(" ") < 4
            weight = LOW_WEIGHT if is_small_talk or is_pasted_line(words) else 0.5
            yield _make_line(SummarySection.GOAL, words, item.position, weight, is_quote=True)


def iter_rules(
    items: Iterable[WindowItem], goals: Iterable[SummaryLine], reader: BlockReader
) -> Iterator[SummaryLine]:
    """Yield the sentences in which the user stated rules, also from quoted goals."""
    for item in items:
        if item.kind is BlockKind.USER:
            message = reader.read_once(parse_user_message, item.block)
            weight = 0.45 if message.is_pasted else 0.75
            yield from (_make_rule(rule, item.position, weight) for rule in message.rules)
        elif item.kind is BlockKind.DEVELOPER:
            for rule, is_strong in reader.read_once(list_project_rules, item.block):
                weight = 0.35 if is_strong else 0.15
                yield _make_line(SummarySection.CONSTRAINTS, rule, item.position, weight)
    for line in goals:
        if line.is_quote:
            yield from (_make_rule(rule, line.newest, 0.6) for rule in iter_rules_in(line.text))


def _make_rule(rule: str, position: int, weight: float) -> SummaryLine:
    asked = 0.3 if rule.endswith("?") else 0.0
    weight -= asked
    return _make_line(SummarySection.CONSTRAINTS, rule, position, weight, is_quote=True)


def _make_line(
    section: SummarySection, text: str, position: int, weight: float, *, is_quote: bool = False
) -> SummaryLine:
    return SummaryLine(section, text, Ranges.of([position]), weight, is_quote)


def is_resolved(line: SummaryLine, actions: Iterable[Action]) -> bool:
    """Check whether a failure in an earlier summary was overcome since."""
    noun, failed, _ = line.text.partition(FAILED_MARK)
    target = find_targets(noun.strip("`"))[-1:]
    return bool(failed) and any(
        not action.is_failure and (action.noun == noun or {*target} & {*action.targets})
        for action in actions
    )


def _iter_repository(items: Sequence[WindowItem], reader: BlockReader) -> Iterator[SummaryLine]:
    """Yield the branch, the last commit and the pull request."""
    answers, state = map_results_by_call(items), dict[str, SummaryLine]()
    for item in items:
        call, answer = item.block, answers.get(item.position)
        if answer and isinstance(call, ToolCall) and reader.read_once(uses_git, call):
            for name, value in reader.read_once(read_repository, answer.block).items():
                text = f"{name} {value}"
                state[name] = _make_line(SummarySection.DONE, text, answer.position, 0.9)
    yield from state.values()


def _read_purpose(block: AnyBlock, reader: BlockReader) -> str:
    """Return the last sentence of a text without its lead-in; empty if it is long."""
    lines = reader.read(block).sentences
    if not lines or not INTENT_PATTERN.match(lines[-1].text):
        return ""
    said = LEAD_IN_PATTERN.sub("", lines[-1].text).rstrip(":.")
    return said if said.count(" ") > 1 and len(said) <= _MAX_PURPOSE_CHARS else ""


def _find_purposes(items: Sequence[WindowItem], reader: BlockReader) -> dict[int, str]:
    """Return what the agent said right before each call that it made, by the call's position."""
    purposes, said = dict[int, str](), ""
    for item in items:
        if item.kind is BlockKind.ASSISTANT:
            said = _read_purpose(item.block, reader)
        elif item.kind is BlockKind.TOOL_CALL and said:
            purposes[item.position], said = said, ""
    return purposes


def iter_progress(actions: Sequence[Action], purposes: Mapping[int, str]) -> Iterator[SummaryLine]:
    """Yield edits, calls with their results, and the failures without a later success.

    What was done several times is one line; a call whose result says nothing short is none.
    """
    newest = max((action.position for action in actions), default=1)
    done: dict[str, list[Action]] = {}
    over: dict[str, int] = {}
    for action in actions:
        if not action.is_failure:
            over |= dict.fromkeys(action.targets, action.position)
            says_result = bool(action.outcome) and action.kind is not ActionKind.LOOK
            if action.kind is ActionKind.EDIT or says_result:
                done.setdefault(action.label, []).append(action)
    for label, times in done.items():
        last = times[-1]
        handles, text, weight = Ranges.of([last.position]), f"{label}: {last.outcome}", 0.5
        if last.kind is ActionKind.EDIT:
            handles = Ranges.of(action.position for action in times)
            text, weight = f"{label} x{len(times)}" if len(times) > 1 else label, 0.35
            told = (purposes.get(action.position) for action in reversed(times))
            if purpose := next(filter(None, told), ""):
                text, weight = f"{text}: {purpose}", 0.45
        weight += 0.3 * last.position / newest
        yield SummaryLine(SummarySection.DONE, text, handles, weight)
    for action in actions:
        is_over = over.get(action.targets[-1], 0) >= action.position
        if action.is_failure and action.kind is not ActionKind.LOOK and not is_over:
            weight = 0.4 + 0.4 * action.position / newest
            text = f"{action.noun}{FAILED_MARK}{action.outcome}"
            yield _make_line(SummarySection.BLOCKED, text, action.position, weight)


def iter_plans(items: Sequence[WindowItem]) -> Iterator[SummaryLine]:
    """Yield the open entries of the agent's to-do list."""
    for task in read_todo_list(items):
        if not task.is_done:
            section = SummarySection.IN_PROGRESS if task.is_started else SummarySection.NEXT
            yield _make_line(section, task.text, task.position, 0.9)


def _iter_next_steps(items: Sequence[WindowItem]) -> Iterator[SummaryLine]:
    """Yield what the agent's last texts announce."""
    # Some agents only think.
    kinds = {item.kind for item in items}
    voice = BlockKind.ASSISTANT if BlockKind.ASSISTANT in kinds else BlockKind.THINKING
    asked = max((item.position for item in items if item.kind is BlockKind.USER), default=0)
    spoken = [i for i in items if i.kind is voice and i.position > asked][-_RECENT:]
    for item in spoken:
        is_last = item is spoken[-1]
        for sentence in iter_sentences(make_printable(item.block.text)):
            text, cues = tidy_line(_EMPHASIS.sub("", sentence.text)), count_cues(sentence)
            if not 12 <= len(text) <= 700:
                continue
            if SentenceCue.INTENT in cues:
                begun = LEAD_IN_PATTERN.sub("", text).rstrip(":.")
                if is_last and begun.count(" ") > 3:
                    yield _make_line(SummarySection.IN_PROGRESS, begun, item.position, 0.4)
            elif SentenceCue.NEXT in cues and (is_last or text[-1] not in "?:"):
                weight = 0.3 + 0.1 * min(cues[SentenceCue.NEXT], 3)
                yield _make_line(SummarySection.NEXT, text, item.position, weight)


def _iter_open_steps(
    steps: Sequence[SummaryLine], items: Sequence[WindowItem], reader: BlockReader
) -> Iterator[SummaryLine]:
    """Yield the steps that the agent did not report as done since."""
    for line in steps:
        stems = find_stems(line.text)
        is_step = stems and line.section is SummarySection.NEXT
        if not is_step or not any(
            len(stems & done) >= _DONE_SHARE * len(stems)
            for item in items
            if item.position > line.newest and item.kind is BlockKind.ASSISTANT
            for done in reader.read_once(_list_done, item.block, reader)
        ):
            yield line


def _list_done(block: AnyBlock, reader: BlockReader) -> tuple[frozenset[str], ...]:
    """Return the stems of each sentence in which the agent reports what is done."""
    return tuple(
        find_stems(one.text)
        for one in reader.read(block).sentences
        if one.sentence and classify_statement(one.sentence) is SummarySection.DONE
    )


def _iter_causes(
    actions: Sequence[Action], items: Sequence[WindowItem], reader: BlockReader
) -> Iterator[SummaryLine]:
    """Yield what the agent said of the cause of each failure, right after it."""
    failed = {action.position for action in actions if action.is_failure}
    newest, is_after = max(failed, default=1), False
    for item in items:
        if item.position in failed:
            is_after = True
        elif item.kind is BlockKind.TOOL_CALL:
            is_after = False
        elif is_after and item.kind in ASSISTANT_KINDS:
            for one in reader.read(item.block).sentences:
                section = one.sentence and classify_statement(one.sentence)
                if section is SummarySection.DECISIONS:
                    weight = 0.3 + 0.4 * item.position / newest
                    yield _make_line(section, one.text, item.position, weight)


def classify_statement(sentence: Sentence) -> SummarySection:
    """Return the section of an agent's sentence that is quoted for what it says."""
    cues = count_cues(sentence)
    if SentenceCue.DECISION in cues and SentenceCue.INTENT not in cues:
        return SummarySection.DECISIONS
    is_plan = SentenceCue.INTENT in cues or _PROPOSED.search(sentence.heading)
    if SentenceCue.DONE in cues and not is_plan:
        return SummarySection.DONE
    return SummarySection.CONTEXT


def _iter_media(items: Iterable[WindowItem]) -> Iterator[SummaryLine]:
    """Yield lines with handles for images and documents, which text cannot replace."""
    for item in items:
        if isinstance(item.block, Block) and item.kind in {BlockKind.IMAGE, BlockKind.DOCUMENT}:
            name = fold_lines(item.block.name or (item.block.media and item.block.media.name) or "")
            text = f"{item.kind} {mark_code(name)}" if name else str(item.kind)
            yield _make_line(SummarySection.CONTEXT, text, item.position, 0.6)
