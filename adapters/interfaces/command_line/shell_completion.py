"""Answers a shell's request for completions, as typer's scripts send it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

COMPLETION_VARIABLE = "_CUTBANK_COMPLETE"
"""Holds the shell that asks: `complete_bash`, `complete_zsh`, ..."""
WORD_BREAKS = {"@", "="}
"""Characters that bash treats as separate words."""


@dataclass(frozen=True, slots=True)
class WordStart:
    """The start of the completed word, which the shell leaves unchanged."""

    prefix: str = ""


def run_completion(program: Any) -> None:
    """Print the completions, and exit."""
    begun = WordStart()
    # Descriptions wrap at this width; fish would take each line for a word.
    os.environ["COLUMNS"] = "1000"
    if os.environ[COMPLETION_VARIABLE].endswith("_bash"):
        words = os.environ.get("COMP_WORDS", "").split("\n")
        words, at, begun = join_broken_words(words, int(os.environ.get("COMP_CWORD") or 0))
        os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(at)}
    program.main([], prog_name="cutbank", obj=begun)


def join_broken_words(words: Sequence[str], current: int) -> tuple[list[str], int, WordStart]:
    """Rejoin words that bash split, and return them with the index of the completed word.

    Of that word, only the part that bash will replace is included; `WordStart` holds the rest.
    """
    typed: list[str] = []
    is_joined = False
    for at, word in enumerate([*words[:current], *(words[current : current + 1] or [""])]):
        is_break = word in WORD_BREAKS and bool(typed)
        if is_break and typed[-1].startswith("-"):
            # `--policy=NAME` is the option and its value.
            if at == current:
                typed.append("")
            continue
        if is_break or is_joined:
            if at == current:
                before = typed.pop() + (word if is_break else "")
                return [*typed, "" if is_break else word], len(typed), WordStart(before)
            typed[-1] += word
        else:
            typed.append(word)
        is_joined = is_break
    return typed, len(typed) - 1, WordStart()
