"""Recognises a refusal for length: by structured codes first, by the words second."""

import re
from typing import Final

from .codes import CODES, OTHER_CODES, OTHER_STATUSES
from .evidence import Evidence
from .marks import MARKS
from .other_kinds import OTHER_SIZES, RATE_OR_QUOTA
from .overflow import Overflow
from .wording import Wording
from .wordings import SHARE_OF_ANSWER, SPECIFIC

LENGTH: Final = 300
_BEFORE: Final = 80
_CHAIN: Final = 20
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|ak|hf|fw|gsk|csk|xai|key|org|proj|req|user|AIza|AKIA|ASIA|eyJ)"
    r"[-_A-Za-z0-9]{10,}|(?<=bearer )\S+",
    re.IGNORECASE,
)


class _About(Exception):  # noqa: N818 - it ends a search, and is no error
    """The error is known to be about something else."""


def recognised(error: object) -> Overflow | None:
    """What is known of the overflow that `error` tells of; None where it is about anything else.

    `error` is an exception, a decoded body or the text of either. Of a chain of exceptions, the
    outermost that says what it is about decides: an overflow that was handled before a rate limit
    was met is over. Raises nothing, whatever it is given.
    """
    try:
        return _of_chain(error)
    except _About:
        return None


def _of_chain(error: object) -> Overflow | None:
    seen: set[int] = set()
    link: object = error
    while link is not None and id(link) not in seen and len(seen) < _CHAIN:
        seen.add(id(link))
        found = _of_group(link) if isinstance(link, BaseExceptionGroup) else _of_one(link)
        if found is not None:
            return found
        if not isinstance(link, BaseException):
            return None
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return None


def _of_group(group: BaseExceptionGroup[BaseException]) -> Overflow | None:
    """That of the first member that tells of one: all others were tried besides."""
    return next(filter(None, map(recognised, group.exceptions[:_CHAIN])), None)


def _of_one(error: object) -> Overflow | None:
    evidence = Evidence()
    evidence.look_at(error)
    if evidence.statuses & OTHER_STATUSES or evidence.codes & OTHER_CODES:
        raise _About
    if code := next((code for code in CODES if code in evidence.codes), None):
        return _by_code(code, evidence)
    for text in evidence.texts:
        if RATE_OR_QUOTA.search(text):
            raise _About
    for text in evidence.texts:
        if found := _worded(text, SPECIFIC):
            return found
    for text in evidence.texts:
        if not OTHER_SIZES.search(text) and (found := _worded(text, MARKS)):
            return found
    return None


def _by_code(code: str, evidence: Evidence) -> Overflow:
    worded = next(filter(None, (_worded(text, SPECIFIC) for text in evidence.texts)), None)
    told = worded or Overflow(message=_line(evidence.texts[0] if evidence.texts else code), rule="")
    return Overflow(
        message=told.message,
        rule=f"code:{code}",
        provider=CODES[code] or told.provider,
        tokens=evidence.numbers.get("tokens", told.tokens),
        limit=evidence.numbers.get("limit", told.limit),
    )


def _worded(text: str, wordings: tuple[Wording, ...]) -> Overflow | None:
    for wording in wordings:
        if match := wording.pattern.search(text):
            tokens, limit = _number(match, "tokens"), _number(match, "limit")
            answer = SHARE_OF_ANSWER.search(text, match.start(), match.start() + 400)
            if tokens is not None and answer and (share := _int(answer[1])) is not None:
                tokens = tokens - share if share < tokens else tokens
            return Overflow(
                message=_line(text, match.start()),
                rule=f"text:{wording.name}",
                provider=wording.provider,
                tokens=tokens,
                limit=limit,
            )
    return None


def _number(match: re.Match[str], group: str) -> int | None:
    return _int(match.groupdict().get(group))


def _int(digits: str | None) -> int | None:
    """The number that was said; None for one that no count of tokens can be."""
    plain = (digits or "").replace(",", "")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= 12 else None


def _line(text: str, at: int = 0) -> str:
    """What was said at `at`: one line, not too long, and nothing that looks like a key."""
    begins = 0 if len(text) <= LENGTH else max(0, at - _BEFORE)
    line = _SECRET.sub("…", text[begins : begins + 2 * LENGTH])
    ends = len(line) > LENGTH or begins + 2 * LENGTH < len(text)
    return ("…" if begins else "") + line[:LENGTH] + ("…" if ends else "")
