"""Checks a draft before it may replace blocks; each rule gives its reason in one sentence."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from ..blocks import BlockKind
from ..errors import RejectedSummaryError
from ..token_estimate import estimate_text
from .clean_text import find_tool_markup, is_quote_in, iter_quotes, list_comparable_texts
from .layout import remove_file_lists
from .summarizer import Draft, Material

SIZE_TOLERANCE = 1.1
"""Models count tokens differently; a text this much over its budget still passes."""


def check_draft(draft: Draft, material: Material, *, user_texts: Iterable[str]) -> None:
    """Raise RejectedSummaryError for the first rule that a draft breaks.

    `user_texts` are the texts of all user blocks of the session up to the boundary, since quotes in
    an earlier summary may be repeated.
    """
    for rule, reason in _iter_faults(draft, material, user_texts):
        raise RejectedSummaryError(rule, reason)


def _iter_faults(
    draft: Draft, material: Material, user_texts: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each rule that a draft breaks, and the reason."""
    text, tokens = draft.text, estimate_text(draft.text)
    if not text.strip():
        yield "empty", "the text is empty"
    if draft.was_truncated:
        reason = "the provider stopped at its output limit, so that the end is missing"
        yield "truncated", reason
    # A model may go on with the task instead of summarizing it.
    if _is_json_call(text):
        yield "tool-calling", "the text is a tool call in JSON"
    if markup := find_tool_markup(_CODE.sub("", _remove_quotes(text))):
        yield "tool-calling", f"the text calls a tool: {markup}"
    granted = material.total_budget
    # No model wrote the lists of files, and the documents' budgets are for the model's text.
    own = tokens if material.template is None else estimate_text(remove_file_lists(text))
    if own > int(granted * SIZE_TOLERANCE):
        yield "oversized", f"the text has {own:,} tokens, and {granted:,} were granted"
    if tokens > material.max_useful_tokens:
        reason = f"the text has {tokens:,} tokens and replaces {material.replaced_tokens:,}"
        yield "not-smaller", reason
    if script := _find_foreign_script(text, material):
        reason = f"the text is written in {script} letters, and none of the session is"
        yield "other-language", reason
    comparable = tuple(chain.from_iterable(map(list_comparable_texts, user_texts)))
    for quote in iter_quotes(text):
        if not is_quote_in(quote, comparable):
            start = quote if len(quote) <= 120 else f"{quote[:119]}…"
            yield "misquoted-user", f"the user never said: {start}"
    if elsewhere := draft.cites - material.covers:
        yield "cites-elsewhere", f"the text cites {elsewhere}, which it does not cover"


def _find_foreign_script(text: str, material: Material) -> str | None:
    """Return the script of a text if the session does not use it, or None.

    Languages of one script are not distinguished, and Latin occurs in every session, in code, names
    and summaries.
    """
    if text.isascii():
        return None
    script = find_dominant_script(_HEADINGS.sub("", _remove_quotes(_CODE.sub("", text))))
    if script is None or script == LATIN_SCRIPT:
        return None
    written: Counter[str] = Counter()
    for spoken in _iter_spoken_texts(material):
        written += count_letters(spoken)
        if written[script] >= MIN_LETTERS:
            return None
    # With fewer letters, the session has hardly any words.
    return script if written.total() >= MIN_LETTERS else None


# Neither tool results, which may be in any language, nor a model's thinking.
_SPEECH_KINDS = frozenset(
    {BlockKind.USER, BlockKind.ASSISTANT, BlockKind.DEVELOPER, BlockKind.TOOL_CALL}
)
_HEADINGS = re.compile(r"^#.*", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*```.*?^[ \t]*```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def _iter_spoken_texts(material: Material) -> Iterator[str]:
    """Yield what users and the agent wrote, and the instructions for the summary."""
    yield material.instructions or ""
    yield material.previous or ""
    yield from (item.block.text for item in material.removed_items if item.kind in _SPEECH_KINDS)


def _remove_quotes(text: str) -> str:
    """Return a text without the lines that quote the user."""
    return "\n".join(line for line in text.split("\n") if not any(iter_quotes(line)))


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


MIN_LETTERS = 40
"""Fewer letters may be a name or a formula in a text of another script."""
LATIN_SCRIPT = "LATIN"

_LATIN = re.compile("[A-Za-z]+")
_OTHER = re.compile(r"[^\W\d_\x00-\x7f]")
# Japanese mixes all of these.
_FAMILIES = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK"}
# A letter that is a syllable or a word counts as several letters of an alphabet.
_WEIGHTS = {"CJK": 3, "HANGUL": 3}


def count_letters(text: str) -> Counter[str]:
    """Count a text's letters in each script, weighted to letters of an alphabet."""
    written = Counter({LATIN_SCRIPT: sum(map(len, _LATIN.findall(text)))})
    if not text.isascii():
        for letter, times in Counter(_OTHER.findall(text)).items():
            script = _find_script(letter)
            written[script] += times * _WEIGHTS.get(script, 1)
    return written


def find_dominant_script(text: str) -> str | None:
    """Return the script of most of a text; None if there is none, or hardly any words."""
    written = count_letters(text)
    ((script, most),) = written.most_common(1)
    return script if most >= MIN_LETTERS and most > written.total() / 2 else None


def _find_script(letter: str) -> str:
    """Return the script of a letter, which begins its name: CYRILLIC SMALL LETTER A."""
    script = unicodedata.name(unicodedata.normalize("NFKC", letter)[0], "").partition(" ")[0]
    return _FAMILIES.get(script, script)
