"""Assigns colors, dashes and marks to setups, the same in each drawing."""

from collections.abc import Iterable
from dataclasses import dataclass

from .....domain.backtest.cell import Setup

# Distinct with any color vision, on light and on dark.
STYLE_COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#8c6bb1",
    "#7f7f7f",
)
STYLE_DASHES = ("solid", "dash", "dot", "dashdot")
STYLE_MARKS = ("circle", "diamond", "square", "triangle-up", "cross", "star")


@dataclass(frozen=True)
class SetupStyle:
    color: str
    dash: str
    mark: str


def assign_styles(setups: Iterable[Setup]) -> dict[str, SetupStyle]:
    """Assign styles by label, in order; when colors run out, dashes and marks differ."""
    labels = dict.fromkeys(setup.label for setup in setups)
    return {
        label: SetupStyle(
            STYLE_COLORS[number % len(STYLE_COLORS)],
            STYLE_DASHES[number // len(STYLE_COLORS) % len(STYLE_DASHES)],
            STYLE_MARKS[number // len(STYLE_COLORS) % len(STYLE_MARKS)],
        )
        for number, label in enumerate(labels)
    }
