"""Implements `idle`: works in idle hours, or shows the state of that work."""

import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ....domain.errors import InvalidSettingError
from ...runtime.idle.idle_status import IdleStatus, get_idle_status
from ..command_line.printing import (
    list_fields,
    print_fields,
    print_rows,
)
from ..command_line.sessions import list_all, open_call_store
from ..command_line.verbs import Answer, Invocation, flag, option

if TYPE_CHECKING:
    from ...runtime.idle.idle_worker import IdleWorker


def idle(
    call: Invocation,
    *,
    status: bool = flag("--status", "Say how the work stands, and do nothing."),
    last: int = option("--last", "How many of each kind --status names.", 5, min=1, max=1_000),
    once: bool = flag("--once", "Do what is due now, then exit: 1 if anything failed, else 0."),
    health: Path | None = option("--health FILE", "Says every few seconds how it does."),
    grace: float = option("--grace SECONDS", "For what runs, when it is to end.", 30.0, min=0),
    log: Literal["text", "json"] = option("--log", "The form of lines on stderr.", "text"),
    verbose: bool = flag("--verbose -v", "Log each look and each beginning."),
    quiet: bool = flag("--quiet -q", "Log warnings only."),
    namespace: list[str] | None = option(
        "--namespace NAME", "For idle.namespaces of the settings; may be repeated."
    ),
) -> Answer:
    if once and health is not None:
        raise InvalidSettingError("--once ends by itself: --health is for a worker that goes on")
    if named := namespace or ([call.named] if call.named else []):
        # The settings are read from the environment when the store is opened.
        os.environ["CUTBANK_IDLE_NAMESPACES"] = json.dumps(named)
    if status:
        with open_call_store(call) as store:
            found = get_idle_status(store, last=last)
        return Answer(found.to_json(), partial(_print_status, found))
    # Slow imports that `--status` does not need.
    from ...runtime.idle.foreground import run_worker  # noqa: PLC0415 - start-up time
    from ...runtime.idle.notices import log_notice, log_to_stderr  # noqa: PLC0415 - start-up time

    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    with log_to_stderr(log, level):
        with open_call_store(call) as store:
            ended = run_worker(
                store, once=once, listeners=[log_notice], health=health, grace_s=grace
            )
            if ended.running_attempts:
                _answer_run(ended, {}).print(as_json=call.as_json)
                # Closing the store would wait for work that never ends; its leases expire.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(1)
        answer = _answer_run(ended, _count_session_states(call) if once else {})
    answer.is_good = ended.has_succeeded or not once
    return answer


def _answer_run(ended: "IdleWorker", left_alone: Mapping[str, int]) -> Answer:
    counts = {**ended.counts, "left_running": len(ended.running_attempts)}
    about = {"workers": [ended.name], "trouble": ended.trouble, "left_alone": left_alone}
    shown = {name: count for name, count in counts.items() if count}
    fields = list_fields(shown | {"trouble": ended.trouble, "left_alone": left_alone})
    nothing = [] if shown else ["nothing was to be done"]
    return Answer(counts | about, *nothing, partial(print_fields, fields))


def _count_session_states(call: Invocation) -> dict[str, int]:
    with open_call_store(call) as store:
        spaces = store.settings.idle.namespaces
        listed = list_all(store, None)
    return Counter(
        one["idle"] for one in listed if one["idle"] and (not spaces or one["namespace"] in spaces)
    )


def _print_status(status: IdleStatus) -> None:
    """Print the counts, and a table of the sessions of each kind."""
    document = asdict(status)
    tables = {name: rows for name, rows in document.items() if isinstance(rows, list)}
    print_fields(list_fields({name: document[name] for name in document if name not in tables}))
    for name, rows in tables.items():
        print_rows(rows, name.replace("_", " "))
