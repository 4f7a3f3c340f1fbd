"""A property that is computed once holds no lock that a forked child would inherit."""

import os
import subprocess
import sys

import pytest

FORKS = """
import os, signal
from dataclasses import dataclass
from threading import Event, Thread
from cutbank.domain.cached_property import cached_property

begun, forked = Event(), Event()

@dataclass(frozen=True)
class Sum:
    number: int
    is_held: bool

    @cached_property
    def value(self):
        if self.is_held:
            begun.set()
            forked.wait()
        return self.number + 1

held, free = Sum(1, is_held=True), Sum(2, is_held=False)
thread = Thread(target=lambda: held.value)
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(30)  # ends a child that waits for the thread of its parent
    os._exit(free.value)
status = os.waitpid(child, 0)[1]
forked.set()
thread.join()
assert (os.waitstatus_to_exitcode(status), vars(held)["value"]) == (3, 2), status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks as POSIX does")
def test_a_child_that_is_forked_while_a_value_is_computed_reads_others() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
