"""Where a value came from: a line of the file, a variable, or nowhere."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """A line of a file, or a variable of the environment; neither for a default."""

    file: str | None = None
    line: int | None = None
    variable: str | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}:{self.line}"
        return self.variable or "default"


UNSET = SettingOrigin()
