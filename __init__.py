"""Keeps every turn an agent took, and serves a compacted view of it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.analysis.auditing.audit import audit as audit
    from .adapters.analysis.auditing.audited_call import audit_call as audit_call
    from .adapters.analysis.auditing.diffs import diff as diff
    from .adapters.analysis.auditing.lineages import lineage_tree as lineage_tree
    from .adapters.analysis.backtest.backtest import backtest as backtest
    from .adapters.analysis.replaying.run_replay import replay as replay
    from .adapters.interfaces.opening import open as open
    from .adapters.runtime.async_agent_loop import AsyncAgentLoop as AsyncAgentLoop
    from .adapters.runtime.compaction.options import CompactionOptions as CompactionOptions
    from .adapters.runtime.compaction.options import LoopOptions as LoopOptions
    from .adapters.runtime.exporting.exporter import export as export
    from .adapters.runtime.idle.current_status import get_idle_status as get_idle_status
    from .adapters.runtime.idle.idle_scheduler import start_scheduler as start_scheduler
    from .adapters.runtime.importing.importer import import_transcripts as import_transcripts
    from .adapters.runtime.sessions.session_store import SessionStore as SessionStore
    from .adapters.runtime.sessions.context_meter import find_context_limit as find_context_limit
    from .adapters.runtime.sessions.context_meter import measure_context as measure_context
    from .adapters.runtime.sessions.stored_session import StoredSession as StoredSession
    from .domain.blocks import Block as Block
    from .domain.blocks import ToolCall as ToolCall
    from .domain.blocks import ToolResult as ToolResult
    from .domain.errors import NothingToCompactError as NothingToCompactError
    from .domain.policies.contract.check_policy import check_policy as check_policy
    from .domain.policies.policy import Policy as Policy
    from .domain.policies.policy import check_settings as check_settings
    from .domain.policies.policy import setting as setting
    from .domain.window import Plan as Plan
    from .domain.window import Window as Window
    from .projections.history_view import HistoryView as HistoryView

    __version__: str

_HOMES = {
    "CompactionOptions": (".adapters.runtime.compaction.options", "CompactionOptions"),
    "LoopOptions": (".adapters.runtime.compaction.options", "LoopOptions"),
    "AsyncAgentLoop": (".adapters.runtime.async_agent_loop", "AsyncAgentLoop"),
    "audit": (".adapters.analysis.auditing.audit", "audit"),
    "audit_call": (".adapters.analysis.auditing.audited_call", "audit_call"),
    "diff": (".adapters.analysis.auditing.diffs", "diff"),
    "lineage_tree": (".adapters.analysis.auditing.lineages", "lineage_tree"),
    "replay": (".adapters.analysis.replaying.run", "replay"),
    "export": (".adapters.runtime.exporting.exporter", "export"),
    "measure_context": (".adapters.runtime.sessions.status_meter", "measure_context"),
    "find_context_limit": (".adapters.runtime.sessions.status_meter", "find_context_limit"),
    "import_transcripts": (".adapters.runtime.importing.importer", "import_transcripts"),
    "backtest": (".adapters.analysis.backtest.backtest", "backtest"),
    "start_scheduler": (".adapters.runtime.idle.scheduler", "start_scheduler"),
    "get_idle_status": (".adapters.runtime.idle.current_status", "get_idle_status"),
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
    "check_settings": (".domain.policies.policy", "check_settings"),
    "open": (".adapters.interfaces.opening", "open"),
    "setting": (".domain.policies.policy", "setting"),
}

__all__ = [
    "AsyncAgentLoop",
    "Block",
    "CompactionOptions",
    "HistoryView",
    "LoopOptions",
    "NothingToCompactError",
    "Plan",
    "Policy",
    "SessionStore",
    "StoredSession",
    "ToolCall",
    "ToolResult",
    "Window",
    "audit",
    "audit_call",
    "backtest",
    "check_policy",
    "check_settings",
    "diff",
    "export",
    "find_context_limit",
    "get_idle_status",
    "import_transcripts",
    "lineage_tree",
    "measure_context",
    "open",
    "replay",
    "setting",
    "start_scheduler",
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
