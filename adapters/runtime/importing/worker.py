"""A process of an import in parallel: opens the database, and imports the files it is told to.

Orders come as lines of JSON on standard input; their end says to stop. What is said goes the same
way to standard output: how far a file is, what other files have to know of it, and its report.
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
WireMessage = dict[str, Any]


class SharedLinks(SubAgentLinks):
    """Asks the process that leads the import, which every file is told of."""

    def __init__(self, say: SendMessage, answers: SimpleQueue[WireMessage]) -> None:
        super().__init__()
        self.say = say
        self.answers = answers

    def begin(self, key: str) -> None:
        """Wait until no other process has a file of this session in hand."""
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
    """Work until the orders end."""
    # Who begins an import in the background of a script has it ignore interrupts, and would have
    # this process ignore its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.getLogger("cutbank.storage").disabled = True  # its parent has said it
    say = _make_sender()
    orders: SimpleQueue[WireMessage] = SimpleQueue()
    try:
        Thread(target=_listen, args=(orders,), daemon=True).start()
        _work(orders, say)
    except KeyboardInterrupt:
        return  # what was read is stored, and marked as it is
    except CutbankError as error:
        say(refused=str(error))


def _work(orders: SimpleQueue[WireMessage], say: SendMessage) -> None:
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

    def heard(offset: int) -> None:
        nonlocal due
        if (now := monotonic()) > due:
            due = now + REPORT_INTERVAL_S
            say(heard=offset)

    importing = FileImport(store, manner, wanted, links, heard)
    report = importing.run()
    say(report=asdict(report), unsettled=importing.unsettled_row)


def _listen(orders: SimpleQueue[WireMessage]) -> None:
    # Unbuffered: a buffer's lock would be held when the process ends.
    with open(0, "rb", buffering=0, closefd=False) as lines:
        for line in lines:
            orders.put(json.loads(line))
    # Nobody waits for an answer any more: whatever is read now is stored, and then it ends.
    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)


def _make_sender() -> SendMessage:
    """Says things to whoever started this process; whatever else prints goes to its errors."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def say(**words: Any) -> None:
        answers.write(json.dumps(words) + "\n")
        answers.flush()

    return say
