"""Detects by its letters which script a text is written in."""

import re
from collections import Counter
from functools import lru_cache
from unicodedata import name, normalize

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


def is_latin(text: str) -> bool:
    """Check, without a full count, that other scripts have too few letters for words."""
    if text.isascii():
        return True
    return len(_OTHER.findall(text)) * max(_WEIGHTS.values()) < MIN_LETTERS


def find_dominant_script(text: str) -> str | None:
    """Return the script of most of a text; None if there is none, or hardly any words."""
    written = count_letters(text)
    ((script, most),) = written.most_common(1)
    return script if most >= MIN_LETTERS and most > written.total() / 2 else None


@lru_cache(maxsize=4_096)
def _find_script(letter: str) -> str:
    """Return the script of a letter, which begins its name: CYRILLIC SMALL LETTER A."""
    script = name(normalize("NFKC", letter)[0], "").partition(" ")[0]
    return _FAMILIES.get(script, script)
