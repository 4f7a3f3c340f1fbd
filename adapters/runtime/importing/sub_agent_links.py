"""Which call started which sub-agent, whichever of their files is imported first."""

from collections.abc import Iterable, Iterator

from ....domain.session import derive_session_id
from ....domain.session_events import Parent
from ...transcripts.formats.steps import SubAgentLink
from ..sessions.session_store import SessionStore


class SubAgentLinks:
    """What the files of one import have told each other so far."""

    def __init__(self) -> None:
        self.known: dict[str, SubAgentLink] = {}

    def begin(self, key: str) -> None:
        """A file of the session `key` is to be stored from here on."""

    def add_link(self, link: SubAgentLink) -> None:
        """A call started the sub-agent."""
        self.known[link.key] = link

    def end(self, keys: Iterable[str]) -> None:
        """The file that holds the sessions `keys` is stored: learn what others told meanwhile."""


def record_parents(store: SessionStore, namespace: str, links: Iterable[SubAgentLink]) -> None:
    """Say of sub-agents that are stored already which call started them."""
    links = list(links)
    missing = {link.key for link in find_unstored_links(store, namespace, links)}
    for link in links:
        if link.key in missing:
            continue  # it is told when it is opened
        agent = store.session(link.key, namespace=namespace)
        parent = Parent(namespace=namespace, key=link.parent_key, tool_call_id=link.parent_call)
        if agent.log.parent != parent:
            agent.configure(parent=parent)


def find_unstored_links(
    store: SessionStore, namespace: str, links: Iterable[SubAgentLink]
) -> Iterator[SubAgentLink]:
    """The links to sub-agents whose own file was not imported yet, or is not there."""
    recorder = store.events.recorder
    return (
        link
        for link in links
        if recorder.select_head(derive_session_id(namespace, link.key)) is None
    )
