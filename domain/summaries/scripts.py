"""Tells by its letters which script a text is written in: languages far apart share none."""

import re
from collections import Counter
from functools import lru_cache
from unicodedata import name, normalize

MIN_LETTERS = 40
"""Letters of an alphabet that are words, and not a name or a formula in another text."""
LATIN_SCRIPT = "LATIN"

_LATIN = re.compile("[A-Za-z]+")
_OTHER = re.compile(r"[^\W\d_\x00-\x7f]")
# Japanese is written in all of these at once.
_FAMILIES = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK"}
# A letter that is a syllable or a word says as much as several of an alphabet.
_WEIGHTS = {"CJK": 3, "HANGUL": 3}


def count_letters(text: str) -> Counter[str]:
    """How much of a text is written in each script, in letters of an alphabet."""
    written = Counter({LATIN_SCRIPT: sum(map(len, _LATIN.findall(text)))})
    if not text.isascii():
        for letter, times in Counter(_OTHER.findall(text)).items():
            script = _find_script(letter)
            written[script] += times * _WEIGHTS.get(script, 1)
    return written


def is_latin(text: str) -> bool:
    """Whether there is not so much of any other script as is words; looks no closer."""
    if text.isascii():
        return True
    return len(_OTHER.findall(text)) * max(_WEIGHTS.values()) < MIN_LETTERS


def find_dominant_script(text: str) -> str | None:
    """The script that most of a text is written in; None where there is none, or hardly a word."""
    written = count_letters(text)
    ((script, most),) = written.most_common(1)
    return script if most >= MIN_LETTERS and most > written.total() / 2 else None


@lru_cache(maxsize=4_096)
def _find_script(letter: str) -> str:
    """The script of a letter, by the first word of its name: CYRILLIC SMALL LETTER A."""
    script = name(normalize("NFKC", letter)[0], "").partition(" ")[0]
    return _FAMILIES.get(script, script)
