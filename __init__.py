"""Keeps every turn an agent took, and serves a compacted view of it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.runtime.sessions.session_store import SessionStore as SessionStore
    from .adapters.runtime.sessions.session_store import open_store as open
    from .adapters.runtime.sessions.stored_session import StoredSession as StoredSession
    from .domain.blocks import Block as Block
    from .domain.blocks import ToolCall as ToolCall
    from .domain.blocks import ToolResult as ToolResult
    from .domain.errors import NothingToCompactError as NothingToCompactError
    from .domain.policies.contract.check_policy import check_policy as check_policy
    from .domain.policies.policy import Policy as Policy
    from .domain.policies.policy import check as check_settings
    from .domain.policies.policy import setting as setting
    from .domain.window import Plan as Plan
    from .domain.window import Window as Window
    from .projections.history_view import HistoryView as HistoryView

    __version__: str

_HOMES = {
    "Block": (".domain.blocks", "Block"),
    "HistoryView": (".projections.history_view", "HistoryView"),
    "NothingToCompactError": (".domain.errors", "NothingToCompactError"),
    "Plan": (".domain.window", "Plan"),
    "Policy": (".domain.policies.policy", "Policy"),
    "SessionStore": (".adapters.runtime.sessions.session_store", "SessionStore"),
    "StoredSession": (".adapters.runtime.sessions.stored_session", "StoredSession"),
    "ToolCall": (".domain.blocks", "ToolCall"),
    "ToolResult": (".domain.blocks", "ToolResult"),
    "Window": (".domain.window", "Window"),
    "check_policy": (".domain.policies.contract.check_policy", "check_policy"),
    "check_settings": (".domain.policies.policy", "check"),
    "open": (".adapters.runtime.sessions.session_store", "open_store"),
    "setting": (".domain.policies.policy", "setting"),
}

__all__ = [
    "Block",
    "HistoryView",
    "NothingToCompactError",
    "Plan",
    "Policy",
    "SessionStore",
    "StoredSession",
    "ToolCall",
    "ToolResult",
    "Window",
    "check_policy",
    "check_settings",
    "open",
    "setting",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: `import cutbank` stays light."""
    if home := _HOMES.get(name):
        return getattr(import_module(home[0], __name__), home[1])
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - as above

        return version("cutbank")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, whether they are loaded by now or not."""
    return sorted([*__all__, "__version__"])
