"""Runs what `victims` can do in copies of one process that has everything loaded.

    python tests/support/fork_server.py        # orders on stdin, one JSON object a line

An order is `{"call": NAME, "arguments": [...], "times": N, "kill": {...}}`. N copies begin
together. What they say goes to stdout, a whole line at a time, and so do `pid N` and `gone CODE`.
"""

import json
import os
import sys
from typing import Any

import kill_steps
import victims


def main() -> None:
    victims.warm_up()
    for line in sys.stdin:
        order = json.loads(line)
        gate, opener = os.pipe()
        workers = [_worker(order, number, gate, opener) for number in range(order["times"])]
        victims.say("pid", *workers)
        os.close(gate)
        os.close(opener)  # and all of them begin
        for worker in workers:
            victims.say("gone", os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))


def _worker(order: dict[str, Any], number: int, gate: int, opener: int) -> int:
    worker = os.fork()
    if worker:
        return worker
    os.close(opener)
    os.read(gate, 1)
    try:
        if order["kill"]:
            kill_steps.install(**order["kill"])
        arguments = [number if word == "NUMBER" else word for word in order["arguments"]]
        getattr(victims, order["call"])(*arguments)
    except BaseException as error:  # noqa: BLE001 - told to whoever gave the order, then it ends
        victims.say("error", type(error).__name__, " ".join(str(error).split()))
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
