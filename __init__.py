"""Keeps every turn an agent took, and serves a compacted view of it.

Everything that users need is imported from here; all other modules may move at any time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.analysis.audit import Audit as Audit
    from .adapters.analysis.audit import audit as audit
    from .adapters.analysis.audit import audit_call as audit_call
    from .adapters.analysis.audit import lineage_tree as lineage_tree
    from .adapters.analysis.backtest.backtest import backtest as backtest
    from .adapters.analysis.backtest.tuning import TuningResult as TuningResult
    from .adapters.analysis.backtest.tuning import tune as tune
    from .adapters.analysis.diffs import diff as diff
    from .adapters.analysis.run_replay import Replay as Replay
    from .adapters.analysis.run_replay import replay as replay
    from .adapters.analysis.verifier import verify as verify
    from .adapters.models.command_summarizer import (
        CommandSummarizer as CommandSummarizer,
    )
    from .adapters.models.llm_summarizer import LlmSummarizer as LlmSummarizer
    from .adapters.models.summarizer_catalog import get_summarizer as get_summarizer
    from .adapters.runtime.agent_loop import AgentLoop as AgentLoop
    from .adapters.runtime.async_store import AsyncAgentLoop as AsyncAgentLoop
    from .adapters.runtime.async_store import AsyncRecords as AsyncRecords
    from .adapters.runtime.async_store import AsyncSession as AsyncSession
    from .adapters.runtime.async_store import AsyncStore as AsyncStore
    from .adapters.runtime.compaction.background import Cancellation as Cancellation
    from .adapters.runtime.compaction.options import CompactionOptions as CompactionOptions
    from .adapters.runtime.compaction.options import LoopOptions as LoopOptions
    from .adapters.runtime.compaction.outcome import CompactionOutcome as CompactionOutcome
    from .adapters.runtime.erasing import ErasureReport as ErasureReport
    from .adapters.runtime.erasing import RetentionReport as RetentionReport
    from .adapters.runtime.exporter import export as export
    from .adapters.runtime.idle.idle_scheduler import IdleScheduler as IdleScheduler
    from .adapters.runtime.idle.idle_scheduler import start_scheduler as start_scheduler
    from .adapters.runtime.idle.idle_status import get_idle_status as get_idle_status
    from .adapters.runtime.importing.importer import import_transcripts as import_transcripts
    from .adapters.runtime.importing.reread import RereadReport as RereadReport
    from .adapters.runtime.importing.reread import reread as reread
    from .adapters.runtime.kept_sources import SourceHit as SourceHit
    from .adapters.runtime.kept_sources import search_sources as search_sources
    from .adapters.runtime.maintenance import run_maintenance as run_maintenance
    from .adapters.runtime.sessions.appending import AppendResult as AppendResult
    from .adapters.runtime.sessions.context_meter import ContextMeasurement as ContextMeasurement
    from .adapters.runtime.sessions.context_meter import find_context_limit as find_context_limit
    from .adapters.runtime.sessions.context_meter import measure_context as measure_context
    from .adapters.runtime.sessions.recalled_blocks import RecalledBlock as RecalledBlock
    from .adapters.runtime.sessions.responses import read_call_reports as read_call_reports
    from .adapters.runtime.sessions.responses import read_message as read_message
    from .adapters.runtime.sessions.session_log import SessionInfo as SessionInfo
    from .adapters.runtime.sessions.session_records import Record as Record
    from .adapters.runtime.sessions.session_records import SessionRecords as SessionRecords
    from .adapters.runtime.sessions.session_store import SessionStore as SessionStore
    from .adapters.runtime.sessions.session_store import open as open
    from .adapters.runtime.sessions.stored_session import StoredSession as StoredSession
    from .adapters.runtime.sessions.stored_session import end_turn as end_turn
    from .adapters.runtime.sessions.stored_session import schedule_wake as schedule_wake
    from .adapters.runtime.worker_threads import run_async as run_async
    from .adapters.settings.load_settings import load_settings as load_settings
    from .adapters.settings.policy_catalog import get_policy as get_policy
    from .adapters.settings.settings import MaintenanceSettings as MaintenanceSettings
    from .adapters.settings.settings import RetentionSettings as RetentionSettings
    from .adapters.settings.settings import Settings as Settings
    from .adapters.transcripts.reports import ExportReport as ExportReport
    from .adapters.transcripts.reports import FileReport as FileReport
    from .domain.backtest_cell import BacktestResult as BacktestResult
    from .domain.blocks import Block as Block
    from .domain.blocks import BlockKind as BlockKind
    from .domain.blocks import Text as Text
    from .domain.blocks import ToolCall as ToolCall
    from .domain.blocks import ToolResult as ToolResult
    from .domain.compaction_events import Trigger as Trigger
    from .domain.compaction_terms import PinRules as PinRules
    from .domain.errors import BacktestError as BacktestError
    from .domain.errors import CacheFileError as CacheFileError
    from .domain.errors import CompactionCancelledError as CompactionCancelledError
    from .domain.errors import CompactionVetoedError as CompactionVetoedError
    from .domain.errors import ConflictError as ConflictError
    from .domain.errors import ContextOverflowError as ContextOverflowError
    from .domain.errors import CutbankError as CutbankError
    from .domain.errors import DuplicateToolCallError as DuplicateToolCallError
    from .domain.errors import ExportError as ExportError
    from .domain.errors import ImportFileError as ImportFileError
    from .domain.errors import InvalidPositionError as InvalidPositionError
    from .domain.errors import InvalidResponseError as InvalidResponseError
    from .domain.errors import InvalidSettingError as InvalidSettingError
    from .domain.errors import LeaseHeldError as LeaseHeldError
    from .domain.errors import LeaseLostError as LeaseLostError
    from .domain.errors import MissingSummariesError as MissingSummariesError
    from .domain.errors import NotFoundError as NotFoundError
    from .domain.errors import NothingToCompactError as NothingToCompactError
    from .domain.errors import OrphanToolResultError as OrphanToolResultError
    from .domain.errors import PolicyFailedError as PolicyFailedError
    from .domain.errors import RejectedSummaryError as RejectedSummaryError
    from .domain.errors import SessionClosedError as SessionClosedError
    from .domain.errors import StalePlanError as StalePlanError
    from .domain.errors import StorageError as StorageError
    from .domain.errors import SummarizerFailedError as SummarizerFailedError
    from .domain.errors import UnknownFieldError as UnknownFieldError
    from .domain.hooks import CompactionEvent as CompactionEvent
    from .domain.hooks import CompactionEventKind as CompactionEventKind
    from .domain.hooks import HookAnswer as HookAnswer
    from .domain.idle_rules import IdleRules as IdleRules
    from .domain.item import WindowItem as WindowItem
    from .domain.models import ModelFacts as ModelFacts
    from .domain.models import ModelOverride as ModelOverride
    from .domain.models import Prices as Prices
    from .domain.native_item import Item as Item
    from .domain.overflow import recognize_overflow as recognize_overflow
    from .domain.policies.contract import check_policy as check_policy
    from .domain.policies.pi import Pi as Pi
    from .domain.policies.policy import Policy as Policy
    from .domain.policies.policy import check_settings as check_settings
    from .domain.policies.preserve_zone import PreserveZone as PreserveZone
    from .domain.policies.reserve_headroom import ReserveHeadroom as ReserveHeadroom
    from .domain.policies.retention_window import RetentionWindow as RetentionWindow
    from .domain.policies.rolling_timeline import RollingTimeline as RollingTimeline
    from .domain.policies.scored_pruning import ScoredPruning as ScoredPruning
    from .domain.ranges import Ranges as Ranges
    from .domain.session_events import Parent as Parent
    from .domain.session_events import Usage as Usage
    from .domain.settings import setting as setting
    from .domain.summaries.extractive import ExtractiveSummarizer as ExtractiveSummarizer
    from .domain.summaries.summarizer import Draft as Draft
    from .domain.summaries.summarizer import Material as Material
    from .domain.summaries.summarizer import Summarizer as Summarizer
    from .domain.window import Plan as Plan
    from .domain.window import Window as Window
    from .projections.audit_entries import AuditedCall as AuditedCall
    from .projections.history_view import HistoryView as HistoryView
    from .projections.lineage_tree import LineageTree as LineageTree
    from .projections.rendering.catalog import register_renderer as register_renderer
    from .projections.rendering.neutral import ViewItem as ViewItem
    from .projections.rendering.neutral import list_items as list_items
    from .projections.view_content import ViewContent as ViewContent
    from .projections.view_diff import ViewDiff as ViewDiff

    __version__: str

_NAMES = {
    "adapters.analysis.audit": "Audit audit audit_call lineage_tree",
    "adapters.analysis.diffs": "diff",
    "adapters.analysis.backtest.backtest": "backtest",
    "adapters.analysis.backtest.tuning": "TuningResult tune",
    "adapters.analysis.run_replay": "Replay replay",
    "adapters.analysis.verifier": "verify",
    "adapters.models.command_summarizer": "CommandSummarizer",
    "adapters.models.llm_summarizer": "LlmSummarizer",
    "adapters.models.summarizer_catalog": "get_summarizer",
    "adapters.runtime.agent_loop": "AgentLoop",
    "adapters.runtime.async_store": "AsyncAgentLoop AsyncRecords AsyncSession AsyncStore",
    "adapters.runtime.compaction.background": "Cancellation",
    "adapters.runtime.compaction.options": "CompactionOptions LoopOptions",
    "adapters.runtime.compaction.outcome": "CompactionOutcome",
    "adapters.runtime.erasing": "ErasureReport RetentionReport",
    "adapters.runtime.exporter": "export",
    "adapters.runtime.idle.idle_scheduler": "IdleScheduler start_scheduler",
    "adapters.runtime.idle.idle_status": "get_idle_status",
    "adapters.runtime.importing.importer": "import_transcripts",
    "adapters.runtime.importing.reread": "RereadReport reread",
    "adapters.runtime.maintenance": "run_maintenance",
    "adapters.runtime.sessions.context_meter": (
        "ContextMeasurement find_context_limit measure_context"
    ),
    "adapters.runtime.sessions.appending": "AppendResult",
    "adapters.runtime.sessions.recalled_blocks": "RecalledBlock",
    "adapters.runtime.sessions.responses": "read_call_reports read_message",
    "adapters.runtime.sessions.session_log": "SessionInfo",
    "adapters.runtime.sessions.session_records": "Record SessionRecords",
    "adapters.runtime.sessions.session_store": "SessionStore open",
    "adapters.runtime.sessions.stored_session": "StoredSession end_turn schedule_wake",
    "adapters.runtime.kept_sources": "SourceHit search_sources",
    "adapters.runtime.worker_threads": "run_async",
    "adapters.settings.load_settings": "load_settings",
    "adapters.settings.policy_catalog": "get_policy",
    "adapters.settings.settings": "MaintenanceSettings RetentionSettings Settings",
    "adapters.transcripts.reports": "ExportReport FileReport",
    "domain.backtest_cell": "BacktestResult",
    "domain.blocks": "Block BlockKind Text ToolCall ToolResult",
    "domain.compaction_events": "Trigger",
    "domain.errors": (
        "BacktestError CacheFileError CompactionCancelledError CompactionVetoedError "
        "ConflictError ContextOverflowError CutbankError DuplicateToolCallError "
        "ExportError ImportFileError InvalidPositionError InvalidResponseError "
        "InvalidSettingError LeaseHeldError LeaseLostError MissingSummariesError "
        "NotFoundError NothingToCompactError OrphanToolResultError PolicyFailedError "
        "RejectedSummaryError SessionClosedError StalePlanError StorageError "
        "SummarizerFailedError UnknownFieldError"
    ),
    "domain.hooks": "CompactionEvent CompactionEventKind HookAnswer",
    "domain.idle_rules": "IdleRules",
    "domain.item": "WindowItem",
    "domain.models": "ModelFacts ModelOverride Prices",
    "domain.native_item": "Item",
    "domain.overflow": "recognize_overflow",
    "domain.compaction_terms": "PinRules",
    "domain.policies.contract": "check_policy",
    "domain.policies.pi": "Pi",
    "domain.policies.policy": "Policy check_settings",
    "domain.policies.preserve_zone": "PreserveZone",
    "domain.policies.reserve_headroom": "ReserveHeadroom",
    "domain.policies.retention_window": "RetentionWindow",
    "domain.policies.rolling_timeline": "RollingTimeline",
    "domain.policies.scored_pruning": "ScoredPruning",
    "domain.ranges": "Ranges",
    "domain.session_events": "Parent Usage",
    "domain.settings": "setting",
    "domain.summaries.extractive": "ExtractiveSummarizer",
    "domain.summaries.summarizer": "Draft Material Summarizer",
    "domain.window": "Plan Window",
    "projections.history_view": "HistoryView",
    "projections.audit_entries": "AuditedCall",
    "projections.lineage_tree": "LineageTree",
    "projections.rendering.catalog": "register_renderer",
    "projections.rendering.neutral": "ViewItem list_items",
    "projections.view_content": "ViewContent",
    "projections.view_diff": "ViewDiff",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import cutbank` stays fast."""
    if module := _MODULES.get(name):
        return getattr(import_module(f".{module}", __name__), name)
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - start-up time

        return version("cutbank")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted([*__all__, "__version__"])
