"""Links sub-agents to the calls that started them, in whatever order files are imported."""

from collections.abc import Iterable, Iterator

from ....domain.session import derive_session_id
from ....domain.session_events import Parent
from ...transcripts.formats.steps import SubAgentLink
from ..sessions.session_store import SessionStore


class SubAgentLinks:
    """The links found so far by one import."""

    def __init__(self) -> None:
        self.known: dict[str, SubAgentLink] = {}

    def begin(self, key: str) -> None:
        """Note that a file of the session `key` is about to be stored."""

    def add_link(self, link: SubAgentLink) -> None:
        self.known[link.key] = link

    def end(self, keys: Iterable[str]) -> None:
        """Note that the file of these sessions is stored; learn the links that others found."""


def record_parents(store: SessionStore, namespace: str, links: Iterable[SubAgentLink]) -> None:
    """Record the parent of each sub-agent that is already stored."""
    links = list(links)
    missing = {link.key for link in find_unstored_links(store, namespace, links)}
    for link in links:
        if link.key in missing:
            continue  # set when it is opened
        agent = store.session(link.key, namespace=namespace)
        parent = Parent(namespace=namespace, key=link.parent_key, tool_call_id=link.parent_call)
        if agent.log.parent != parent:
            agent.configure(parent=parent)


def find_unstored_links(
    store: SessionStore, namespace: str, links: Iterable[SubAgentLink]
) -> Iterator[SubAgentLink]:
    recorder = store.events.recorder
    return (
        link
        for link in links
        if recorder.select_head(derive_session_id(namespace, link.key)) is None
    )
