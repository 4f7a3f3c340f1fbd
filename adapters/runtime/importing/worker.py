"""Runs one process of a parallel import, which imports files as ordered.

Orders come as lines of JSON on standard input, whose end means stop. Answers go to standard output
in the same way: progress, links for other files, and reports.
"""

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple
from pathlib import Path
from queue import SimpleQueue
from threading import Thread, main_thread
from time import monotonic
from typing import Any

from ....domain.errors import CutbankError
from ...storage.event_log.storage_errors import translate_storage_errors
from ...transcripts.formats.steps import SubAgentLink
from ..sessions.session_store import SessionStore, open_store
from .file_import import FileImport, ImportOptions, WantedFile
from .sub_agent_links import SubAgentLinks

REPORT_INTERVAL_S = 0.1
SendMessage = Callable[..., None]
_WireMessage = dict[str, Any]


class SharedLinks(SubAgentLinks):
    """Asks the leading process, which knows the links of all files."""

    def __init__(self, say: SendMessage, answers: SimpleQueue[_WireMessage]) -> None:
        super().__init__()
        self.say = say
        self.answers = answers

    def begin(self, key: str) -> None:
        """Wait until no other process is reading a file of this session."""
        self._ask(begin=key)

    def add_link(self, link: SubAgentLink) -> None:
        super().add_link(link)
        self.say(link=astuple(link))

    def end(self, keys: Iterable[str]) -> None:
        self._ask(end=list(keys))

    def _ask(self, **question: Any) -> None:
        self.say(**question)
        for link in self.answers.get()["links"]:
            super().add_link(SubAgentLink(*link))


def main() -> None:
    # A shell's background job ignores interrupts, and this process would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.getLogger("cutbank.storage").disabled = True  # the parent has logged it
    say = _make_sender()
    orders: SimpleQueue[_WireMessage] = SimpleQueue()
    try:
        Thread(target=_listen, args=(orders,), daemon=True).start()
        _work(orders, say)
    except KeyboardInterrupt:
        return  # what was read is stored, with its progress
    except CutbankError as error:
        say(refused=str(error))


def _work(orders: SimpleQueue[_WireMessage], say: SendMessage) -> None:
    first = orders.get()
    manner = ImportOptions(**first["manner"])
    opening = first["open"]
    counter = opening.pop("counter")
    with open_store(opening.pop("address"), **opening) as store:
        if counter is not None:
            store.set_tokenizer(counter)
        links = SharedLinks(say, orders)
        while True:
            order = orders.get()
            wanted = WantedFile(Path(order["path"]), order["is_named"])
            with translate_storage_errors(store.name):
                _import(store, manner, wanted, links, say)


def _import(
    store: SessionStore,
    manner: ImportOptions,
    wanted: WantedFile,
    links: SubAgentLinks,
    say: SendMessage,
) -> None:
    due = 0.0

    def report_offset(offset: int) -> None:
        nonlocal due
        if (now := monotonic()) > due:
            due = now + REPORT_INTERVAL_S
            say(heard=offset)

    importing = FileImport(store, manner, wanted, links, report_offset)
    report = importing.run()
    say(report=asdict(report), unsettled=importing.unsettled_row)


def _listen(orders: SimpleQueue[_WireMessage]) -> None:
    # Unbuffered, as a buffer's lock would be held when the process ends.
    with open(0, "rb", buffering=0, closefd=False) as lines:
        for line in lines:
            orders.put(json.loads(line))
    # The parent is gone: store what is being read, then end.
    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)


def _make_sender() -> SendMessage:
    """Return a function that sends answers to the parent; other output goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def say(**words: Any) -> None:
        answers.write(json.dumps(words) + "\n")
        answers.flush()

    return say
