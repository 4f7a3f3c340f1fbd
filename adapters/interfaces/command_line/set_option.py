"""Reads what stands behind `--set`."""

from collections.abc import Iterable

from ....domain.errors import InvalidSettingError


def parse_settings(words: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` words as settings; raises InvalidSettingError for what is none."""
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InvalidSettingError(f"--set takes KEY=VALUE, not {word!r}")
        settings[name.strip()] = value.strip()
    return settings
