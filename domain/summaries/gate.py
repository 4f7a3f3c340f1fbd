"""Checks a draft before it may replace blocks; each rule gives its reason in one sentence."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from ..blocks import Kind
from ..errors import RejectedSummaryError
from ..token_estimate import estimate_text
from .extraction.clean_text import LINE_CACHE_SIZE
from .extraction.file_lists import remove_file_lists
from .quotes import is_quote_in, iter_quotes, list_comparable_texts
from .scripts import LATIN_SCRIPT, MIN_LETTERS, count_letters, find_dominant_script, is_latin
from .summarizer import Draft, Material
from .tool_markup import find_tool_markup

SIZE_TOLERANCE = 1.1
"""Models count tokens differently; a text this much over its budget still passes."""
ALWAYS_SMALL_TOKENS = 32
"""The tokens that a text may always have, even if it replaces fewer."""


@dataclass(frozen=True, slots=True)
class GateCase:
    """What a rule judges by."""

    draft: Draft
    material: Material
    user_texts: tuple[str, ...]
    """The user's own texts, normalized for comparison."""


_Rule = Callable[[GateCase], str | None]
"""Returns why a draft is rejected, or None."""


def check_draft(draft: Draft, material: Material, *, user_texts: Iterable[str]) -> None:
    """Raise RejectedSummaryError for the first rule of GATE_RULES that a draft breaks.

    `user_texts` are the texts of all user blocks of the session up to the boundary, since quotes in
    an earlier summary may be repeated.
    """
    case = GateCase(
        draft, material, tuple(chain.from_iterable(map(list_comparable_texts, user_texts)))
    )
    for name, rule in GATE_RULES.items():
        if reason := rule(case):
            raise RejectedSummaryError(name, reason)


def _count_replaced_tokens(material: Material) -> int:
    """Return the estimated tokens that a text replaces: the blocks, and the earlier summary."""
    return sum(item.tokens for item in material.removed_items) + estimate_text(
        material.previous or ""
    )


def compute_max_useful_tokens(material: Material) -> int:
    """Return the most tokens of a text that still makes the view smaller."""
    return max(_count_replaced_tokens(material) - 1, ALWAYS_SMALL_TOKENS)


def _check_not_empty(case: GateCase) -> str | None:
    if case.draft.text.strip():
        return None
    return "the text is empty"


def _check_not_truncated(case: GateCase) -> str | None:
    if not case.draft.was_truncated:
        return None
    return "the provider stopped at its output limit, so that the end is missing"


def _check_no_tool_calls(case: GateCase) -> str | None:
    """Reject a model that goes on with the task instead of summarizing it."""
    if _is_json_call(case.draft.text):
        return "the text is a tool call in JSON"
    if markup := _find_markup(case.draft.text):
        return f"the text calls a tool: {markup}"
    return None


def _check_size(case: GateCase) -> str | None:
    text, granted = case.draft.text, case.material.total_budget
    if case.material.template is not None:
        # No model wrote the lists of files, and the documents' budgets are for the model's text.
        text = remove_file_lists(text)
    tokens = estimate_text(text)
    if tokens <= int(granted * SIZE_TOLERANCE):
        return None
    return f"the text has {tokens:,} tokens, and {granted:,} were granted"


def _check_smaller(case: GateCase) -> str | None:
    tokens = estimate_text(case.draft.text)
    if tokens <= compute_max_useful_tokens(case.material):
        return None
    return f"the text has {tokens:,} tokens and replaces {_count_replaced_tokens(case.material):,}"


def _check_language(case: GateCase) -> str | None:
    """Reject a model that answers in a language that the session does not use.

    Languages of one script are not distinguished, and Latin occurs in every session, in code, names
    and summaries.
    """
    if is_latin(case.draft.text):
        return None
    own = "\n".join(
        line for line in _iter_unquoted_lines(_CODE.sub("", case.draft.text)) if line[:1] != "#"
    )
    script = find_dominant_script(own)
    if script is None or script == LATIN_SCRIPT:
        return None
    written: Counter[str] = Counter()
    for text in _iter_spoken_texts(case.material):
        written += count_letters(text)
        if written[script] >= MIN_LETTERS:
            return None
    if written.total() < MIN_LETTERS:
        return None  # hardly any words
    return f"the text is written in {script} letters, and nothing that was said is"


def _check_quotes(case: GateCase) -> str | None:
    for quote in iter_quotes(case.draft.text):
        if not is_quote_in(quote, case.user_texts):
            return f"the user never said: {_excerpt_start(quote)}"
    return None


def _check_citations(case: GateCase) -> str | None:
    elsewhere = case.draft.cites - case.material.covers
    if not elsewhere:
        return None
    return f"the text cites {elsewhere}, which it does not stand for"


GATE_RULES: dict[str, _Rule] = {
    "empty": _check_not_empty,
    "truncated": _check_not_truncated,
    "tool-calling": _check_no_tool_calls,
    "oversized": _check_size,
    "not-smaller": _check_smaller,
    "other-language": _check_language,
    "misquoted-user": _check_quotes,
    "cites-elsewhere": _check_citations,
}

# Neither tool results, which may be in any language, nor a model's thinking.
_SPEECH_KINDS = frozenset({Kind.USER, Kind.ASSISTANT, Kind.DEVELOPER, Kind.TOOL_CALL})
_FENCE = "```"
_CODE = re.compile(r"^[ \t]*```.*?^[ \t]*```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def _iter_spoken_texts(material: Material) -> Iterator[str]:
    """Yield what users and the agent wrote, and the instructions for the summary."""
    yield material.instructions or ""
    yield material.previous or ""
    yield from (item.block.text for item in material.removed_items if item.kind in _SPEECH_KINDS)


def _iter_unquoted_lines(text: str) -> Iterable[str]:
    return (line for line in text.split("\n") if not _has_quote(line))


@lru_cache(maxsize=LINE_CACHE_SIZE)
def _has_quote(line: str) -> bool:
    return any(iter_quotes(line))


def _find_markup(text: str) -> str | None:
    """Return the first markup of a tool call in a text, ignoring quotes and code."""
    if _FENCE in text:
        return find_tool_markup(_CODE.sub("", "\n".join(_iter_unquoted_lines(text))))
    # Markup never spans lines, and code does so only between fences.
    return next(filter(None, map(_find_markup_in_line, text.split("\n"))), None)


@lru_cache(maxsize=LINE_CACHE_SIZE)
def _find_markup_in_line(line: str) -> str | None:
    return None if _has_quote(line) else find_tool_markup(_CODE.sub("", line))


def _is_json_call(text: str) -> bool:
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].partition("\n")[2].strip()
    if not text.startswith(("{", "[")):
        return False
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return False
    entries = tree if isinstance(tree, list) else [tree]
    return any(isinstance(entry, dict) and _is_call(entry) for entry in entries)


def _is_call(entry: dict[str, object]) -> bool:
    arguments = {"arguments", "input", "parameters", "args"}
    return bool({"tool_calls", "function_call", "tool_use"} & set(entry)) or (
        "name" in entry and bool(arguments & set(entry))
    )


def _excerpt_start(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
