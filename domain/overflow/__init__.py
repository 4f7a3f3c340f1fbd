"""Decides, in one place, whether a model refused a request because it was too long."""

from .overflow import Overflow as Overflow
from .recognizer import recognize_overflow as recognize_overflow
from .reference_systems import REFERENCE_TESTS as REFERENCE_TESTS
from .silent import recognize_silent_overflow as recognize_silent_overflow
