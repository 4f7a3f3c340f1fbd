"""Reads and writes sessions of pi and its fork oh-my-pi: lists, and trees with branches."""

from functools import partial

from ..format import Format, make_line_read
from .pi_reader import OH_MY_PI as OMP
from .pi_reader import PI, begin_reading, is_oh_my_pi, is_pi
from .pi_writer import write

FORMAT = Format(
    name=PI,
    description="sessions of pi",
    recognizes=is_pi,
    read=make_line_read(partial(begin_reading, PI)),
    begin_reading=partial(begin_reading, PI),
    write=partial(write, PI),
    home_patterns=("~/.pi/agent/sessions",),
)
OH_MY_PI_FORMAT = Format(
    name=OMP,
    description="sessions of oh-my-pi",
    recognizes=is_oh_my_pi,
    read=make_line_read(partial(begin_reading, OMP)),
    begin_reading=partial(begin_reading, OMP),
    write=partial(write, OMP),
    home_patterns=("~/.omp/agent/sessions",),
)
