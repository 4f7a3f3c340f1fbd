"""Defines the origin of a value: a line of the file, a variable, or neither."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A line of a file, or an environment variable; neither for a default."""

    file: str | None = None
    line: int | None = None
    variable: str | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}:{self.line}"
        return self.variable or "default"


UNSET = SettingOrigin()
