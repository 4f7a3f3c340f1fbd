"""Recognizes refusals of long requests: by structured codes first, by wording second."""

import re
from dataclasses import dataclass, replace
from typing import Final

from .evidence import Evidence
from .wordings import (
    ANSWER_SHARE_PATTERN,
    OTHER_CODES,
    OTHER_SIZES_PATTERN,
    OTHER_STATUSES,
    OVERFLOW_CODES,
    RATE_OR_QUOTA_PATTERN,
    SPECIFIC_WORDINGS,
    WEAK_WORDINGS,
    OverflowWording,
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request that was too long for its model."""

    message: str
    """One line of the provider's text, shortened, with possible keys masked."""
    rule: str
    """How it was recognized: `code:...` or `text:...`."""
    provider: str | None = None
    """The provider, if the wording or code is unique to it."""
    tokens: int | None = None
    """Tokens of the prompt by the provider's count, without the answer's share if stated."""
    limit: int | None = None
    """Tokens that the model accepts, according to the provider."""


_MAX_MESSAGE_CHARS: Final = 300
_CHARS_BEFORE: Final = 80
_MAX_CHAIN: Final = 20
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|ak|hf|fw|gsk|csk|xai|key|org|proj|req|user|AIza|AKIA|ASIA|eyJ)"
    r"[-_A-Za-z0-9]{10,}|(?<=bearer )\S+",
    re.IGNORECASE,
)


class _OtherErrorFound(Exception):  # noqa: N818 - it ends a search and is not an error
    """The error is about something else."""


def recognize_overflow(error: object) -> Overflow | None:
    """Return the overflow that `error` reports; None if it is about anything else.

    `error` is an exception, a decoded body or the text of either. In a chain of exceptions, the
    outermost one with a known subject decides: an overflow that was handled before a rate limit is
    over. Never raises.
    """
    try:
        return _recognize_in_chain(error)
    except _OtherErrorFound:
        return None


def _recognize_in_chain(error: object) -> Overflow | None:
    seen: set[int] = set()
    link: object = error
    while link is not None and id(link) not in seen and len(seen) < _MAX_CHAIN:
        seen.add(id(link))
        found = (
            _recognize_in_group(link)
            if isinstance(link, BaseExceptionGroup)
            else _recognize_in_one(link)
        )
        if found is not None:
            return found
        if not isinstance(link, BaseException):
            return None
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return None


def _recognize_in_group(group: BaseExceptionGroup[BaseException]) -> Overflow | None:
    """Return the overflow of the first member that reports one; the others were alternatives."""
    return next(filter(None, map(recognize_overflow, group.exceptions[:_MAX_CHAIN])), None)


def _recognize_in_one(error: object) -> Overflow | None:
    evidence = Evidence()
    evidence.look_at(error)
    if evidence.statuses & OTHER_STATUSES or evidence.codes & OTHER_CODES:
        raise _OtherErrorFound
    if code := next((code for code in OVERFLOW_CODES if code in evidence.codes), None):
        return _make_overflow(code, evidence)
    texts = evidence.texts
    if any(map(RATE_OR_QUOTA_PATTERN.search, texts)):
        raise _OtherErrorFound
    plain = [text for text in texts if not OTHER_SIZES_PATTERN.search(text)]
    return _match_first(texts, SPECIFIC_WORDINGS) or _match_first(plain, WEAK_WORDINGS)


def _make_overflow(code: str, evidence: Evidence) -> Overflow:
    worded = _match_first(evidence.texts, SPECIFIC_WORDINGS)
    worded = worded or Overflow(_excerpt_line([*evidence.texts, code][0]), rule="")
    return replace(
        worded,
        rule=f"code:{code}",
        provider=OVERFLOW_CODES[code] or worded.provider,
        tokens=evidence.numbers.get("tokens", worded.tokens),
        limit=evidence.numbers.get("limit", worded.limit),
    )


def _match_first(texts: list[str], wordings: tuple[OverflowWording, ...]) -> Overflow | None:
    return next(filter(None, (_match_wordings(text, wordings) for text in texts)), None)


def _match_wordings(text: str, wordings: tuple[OverflowWording, ...]) -> Overflow | None:
    for wording in wordings:
        if match := wording.pattern.search(text):
            counts = match.groupdict()
            tokens, limit = _parse_count(counts.get("tokens")), _parse_count(counts.get("limit"))
            answer = ANSWER_SHARE_PATTERN.search(text, match.start(), match.start() + 400)
            if tokens is not None and answer and (share := _parse_count(answer[1])) is not None:
                tokens = tokens - share if share < tokens else tokens
            return Overflow(
                message=_excerpt_line(text, match.start()),
                rule=f"text:{wording.name}",
                provider=wording.provider,
                tokens=tokens,
                limit=limit,
            )
    return None


def _parse_count(digits: str | None) -> int | None:
    """Return the number; None if it is too long for a count of tokens."""
    plain = (digits or "").replace(",", "")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= 12 else None


def _excerpt_line(text: str, at: int = 0) -> str:
    """Return one line of the text around `at`, shortened, with possible keys masked."""
    begins = 0 if len(text) <= _MAX_MESSAGE_CHARS else max(0, at - _CHARS_BEFORE)
    line = _SECRET.sub("…", text[begins : begins + 2 * _MAX_MESSAGE_CHARS])
    ends = len(line) > _MAX_MESSAGE_CHARS or begins + 2 * _MAX_MESSAGE_CHARS < len(text)
    return ("…" if begins else "") + line[:_MAX_MESSAGE_CHARS] + ("…" if ends else "")
