"""Sessions of pi and of its fork oh-my-pi: lists, and trees with branches."""

from functools import partial

from ..format import Format, read_lines
from .reader import OH_MY_PI as OMP
from .reader import PI, begin, is_oh_my_pi, is_pi
from .writer import write

FORMAT = Format(
    name=PI,
    what="sessions of pi",
    recognises=is_pi,
    read=read_lines(partial(begin, PI)),
    begin=partial(begin, PI),
    write=partial(write, PI),
    homes=("~/.pi/agent/sessions",),
)
OH_MY_PI = Format(
    name=OMP,
    what="sessions of oh-my-pi",
    recognises=is_oh_my_pi,
    read=read_lines(partial(begin, OMP)),
    begin=partial(begin, OMP),
    write=partial(write, OMP),
    homes=("~/.omp/agent/sessions",),
)
