"""Settings in the environment: `CUTBANK_SUMMARY_RETRIES=5` sets `retries` of `[summary]`.

Two underscores lead further into a table: `CUTBANK_COMPACTION_SETTINGS__KEEP_TOKENS=4000`. A table
or a list may be given as JSON.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .nearest import nearest
from .secret import REFUSAL, holds_a_key, names_a_key
from .section import Section, Shape, Told, told
from .toml_lines import Path

PREFIX = "CUTBANK_"


@dataclass(frozen=True, slots=True)
class Given:
    """What one variable sets."""

    variable: str
    path: Path
    value: Any


def given_by(environ: Mapping[str, str], root: type[Section]) -> Iterator[Given | str]:
    """What each variable sets; a sentence where it sets nothing, and was meant to."""
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(PREFIX) or not text.strip():
            continue
        first, *deeper = variable.removeprefix(PREFIX).split("__")
        name, _, field = first.lower().partition("_")
        if name in root.model_fields:
            keys = [key for key in (name, field, *deeper) if key]
            path, about = _followed(root, keys)
            if names_a_key(variable) or holds_a_key(text):
                yield f"{variable} {REFUSAL}"
            else:
                yield Given(variable, path, about.read(text) if about else text)
        elif (near := nearest(name, root.model_fields)) and (field or deeper):
            # Other variables that begin so are somebody else's.
            yield f"{variable} sets nothing; did you mean {near.upper()} for {name.upper()}?"


def _followed(root: type[Section], keys: list[str]) -> tuple[Path, Told | None]:
    """The path that a variable's words name, and what is known of what is there."""
    path: Path = ()
    section: type[Section] | None = root
    about: Told | None = None
    for key in keys:
        if about and about.is_by_name:
            # A name that the user gives is taken as it stands; behind it come fields.
            path, about = (*path, key), None
            continue
        lowered = key.lower()
        path = (*path, lowered)
        is_known = section is not None and lowered in section.model_fields
        about = told(section, lowered) if section and is_known else None
        if about and about.shape is Shape.TABLE:
            section = about.section
        elif about:
            section = None
    return path, about
