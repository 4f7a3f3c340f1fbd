"""Whether a model refused a request because it was too long: the one place that decides it."""

from .overflow import Overflow as Overflow
from .recogniser import recognised as recognised
from .silent import overflowed_silently as overflowed_silently
from .systems import SETS as SETS
