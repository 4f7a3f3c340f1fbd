"""Decides, in one place, whether a model refused a request because it was too long."""

from .recognizer import Overflow as Overflow
from .recognizer import recognize_overflow as recognize_overflow
