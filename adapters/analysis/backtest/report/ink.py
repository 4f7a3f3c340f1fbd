"""Colours, dashes and marks of the setups, so that one setup looks alike in each drawing."""

from collections.abc import Iterable
from dataclasses import dataclass

from .....domain.backtest.cell import Setup

# Told apart by all kinds of sight, on light and on dark.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
DASHES = ("solid", "dash", "dot", "dashdot")
MARKS = ("circle", "diamond", "square", "triangle-up", "cross", "star")


@dataclass(frozen=True)
class Ink:
    colour: str
    dash: str
    mark: str


def inks_of(setups: Iterable[Setup]) -> dict[str, Ink]:
    """By label, in the order of the setups; where colours run out, dashes and marks differ."""
    labels = dict.fromkeys(setup.label for setup in setups)
    return {
        label: Ink(
            COLOURS[number % len(COLOURS)],
            DASHES[number // len(COLOURS) % len(DASHES)],
            MARKS[number // len(COLOURS) % len(MARKS)],
        )
        for number, label in enumerate(labels)
    }
