"""Gathers all that a summary could say, from the blocks and the summary before, and weighs it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...item import Item
from ...ranges import Ranges
from ..summariser import Material
from .actions import actions_of
from .findings import is_over, media_of, plans_of, progress_of, remarks_of
from .requests import WEAK, requests_of, rules_of
from .sections import Line, Section, merged

_PROGRESS = frozenset({Section.DONE, Section.IN_PROGRESS, Section.BLOCKED})
_WORD = re.compile(r"\w{4,}")
_STEM = 6


def candidates(material: Material, earlier: Iterable[Line]) -> list[Line]:
    """All that could be said, what weighs most first."""
    items = material.gone
    earlier = tuple(earlier)
    actions = list(actions_of(items))
    new = [
        *rules_of(items, (line for line in earlier if line.section is Section.GOAL)),
        *progress_of(actions),
        *plans_of(items),
        *remarks_of(items),
        *media_of(items),
    ]
    # What was under way then is so no more, and newer plans replace older ones.
    past = {Section.IN_PROGRESS} if new else set()
    past |= {Section.NEXT} & {line.section for line in new}
    old = [
        line
        for line in earlier
        if line.section not in past
        and not (line.section is Section.BLOCKED and is_over(line, actions))
    ]
    goals = [line for line in old if line.section is Section.GOAL]
    rest = [line for line in old if line.section is not Section.GOAL]
    lines = [
        *_goals([*goals, *requests_of(items)]),
        *(_of_turn(line, material.prefix) for line in merged([*rest, *new])),
        *_turns_request(items, material.prefix),
    ]
    wished = stems(material.instructions or "")
    return by_weight(_as_wished(line, wished) for line in lines) if wished else by_weight(lines)


def by_weight(lines: Iterable[Line]) -> list[Line]:
    """What weighs most first, of equals the newest, else in the order given."""
    return sorted(lines, key=lambda line: (-line.weight, -line.newest))


def stems(text: str) -> frozenset[str]:
    """The beginnings of the longer words of a text, by which two texts are about the same."""
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()))


def _goals(lines: Sequence[Line]) -> Iterator[Line]:
    """Requests, of which the first and the latest say most."""
    # An earlier summary may quote one message twice, once the longer.
    longest: dict[Ranges | str, Line] = {}
    for line in lines:
        key = line.handles or line.text
        longest[key] = max(longest.get(key, line), line, key=lambda line: len(line.text))
    requests = sorted(merged(longest.values()), key=lambda line: line.newest)
    telling = [line for line in requests if line.weight > WEAK] or requests
    for number, line in enumerate(requests):
        if line is telling[0]:
            yield line.weighing(1.0)
        elif line is telling[-1]:
            yield line.weighing(0.95)
        elif line.weight > WEAK:
            yield line.weighing(0.4 + 0.4 * number / len(requests))
        else:
            yield line


def _of_turn(line: Line, prefix: Ranges) -> Line:
    """Progress within a turn that goes on is told apart."""
    # Most lines are from before: their newest handle tells.
    if line.section in _PROGRESS and line.newest in prefix and not line.handles - prefix:
        return replace(line, section=Section.TURN)
    return line


def _turns_request(items: Iterable[Item], prefix: Ranges) -> Iterator[Line]:
    """What the turn that goes on was begun with."""
    begun = requests_of(item for item in items if item.position in prefix)
    if first := next(iter(begun), None):
        yield replace(first, section=Section.TURN, weight=0.85)


def _as_wished(line: Line, wished: frozenset[str]) -> Line:
    """What is about the words of an instruction goes before the rest."""
    about = len(wished & stems(line.text))
    return line.weighing(line.weight + min(0.6, 0.3 * about)) if about else line
