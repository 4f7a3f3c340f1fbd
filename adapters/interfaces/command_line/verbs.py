"""Lists every verb; its module is loaded when the verb is called, or its help is shown."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from .invocation import add_shared_options

VERBS = {
    "demo": "demo.demo",
    "import": "cli_importing.import_",
    "export": "cli_exporting.export",
    "formats": "cli_formats.formats",
    "sessions": "cli_reading.sessions",
    "costs": "cli_costs.costs",
    "show": "cli_reading.show",
    "view": "cli_reading.view",
    "diff": "cli_comparing.diff",
    "lineage": "cli_comparing.lineage",
    "recall": "cli_reading.recall",
    "search": "cli_searching.search",
    "audit": "cli_auditing.audit",
    "append": "cli_writing.append",
    "pin": "cli_writing.pin",
    "unpin": "cli_writing.unpin",
    "hide": "cli_writing.hide",
    "retract": "cli_writing.retract",
    "fork": "cli_writing.fork",
    "prepare": "cli_looping.prepare",
    "record-call": "cli_looping.record_call",
    "overflowed": "cli_looping.handle_overflow",
    "meter": "cli_metering.meter",
    "compact": "cli_compacting.compact",
    "activate": "cli_compacting.activate",
    "revert": "cli_compacting.revert",
    "replay": "cli_replaying.replay",
    "idle": "cli_idling.idle",
    "wake": "cli_wake.wake",
    "backtest": "cli_backtesting.backtest",
    "policies": "cli_policies.policies",
    "settings": "cli_settings.settings",
    "verify": "cli_verify.verify",
    "backup": "cli_verify.backup",
    "rebuild": "cli_searching.rebuild",
}


class LazyVerbs(Mapping[str, Any]):
    """typer's commands, loaded one at a time so that each verb starts fast."""

    def __getitem__(self, name: str) -> Any:
        module, function = VERBS[name].split(".")
        verb = getattr(import_module(f".{module}", __package__), function)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name)(add_shared_options(verb))
        return get_command(app)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Program(TyperGroup):
    """The program, which looks up its verbs when they are needed."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = LazyVerbs()
