"""Parses the values of `--set`."""

from collections.abc import Iterable

from ....domain.errors import InvalidSettingError


def parse_settings(words: Iterable[str]) -> dict[str, str]:
    """Parse `KEY=VALUE` words. Raises InvalidSettingError if one is malformed."""
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InvalidSettingError(f"--set takes KEY=VALUE, not {word!r}")
        settings[name.strip()] = value.strip()
    return settings
