"""Reads and writes sessions of pi and its fork oh-my-pi: lists, and trees with branches."""

from functools import partial

from ..format import Format, make_line_format
from .pi_reader import OH_MY_PI, PI, begin_reading, is_from_pi
from .pi_writer import write


def _make_format(name: str, home: str) -> Format:
    recognizes, begin = partial(is_from_pi, name), partial(begin_reading, name)
    description = f"sessions of {name}"
    return make_line_format(
        name, description, recognizes, begin, partial(write, name), home_patterns=(home,)
    )


FORMAT = _make_format(PI, "~/.pi/agent/sessions")
OH_MY_PI_FORMAT = _make_format(OH_MY_PI, "~/.omp/agent/sessions")
