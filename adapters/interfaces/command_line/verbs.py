"""Lists every verb and the options that all take; loads a verb's module when it is called."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from .printing import print_json, print_text

DATABASE_VARIABLE = "CUTBANK_DB"
VERBS = {
    "demo": "demo.demo",
    "import": "import_.import_",
    "export": "export.export",
    "formats": "export.formats",
    "sessions": "list_.sessions",
    "costs": "list_.costs",
    "show": "read.show",
    "view": "read.view",
    "diff": "diff.diff",
    "lineage": "lineage.lineage",
    "recall": "read.recall",
    "search": "read.search",
    "audit": "audit.audit",
    "append": "write.append",
    "pin": "write.pin",
    "unpin": "write.unpin",
    "hide": "write.hide",
    "retract": "write.retract",
    "fork": "write.fork",
    "prepare": "loop.prepare",
    "record-call": "loop.record_call",
    "overflowed": "loop.handle_overflow",
    "meter": "loop.meter",
    "compact": "compact.compact",
    "activate": "compact.activate",
    "revert": "compact.revert",
    "replay": "replay.replay",
    "idle": "idle.idle",
    "wake": "write.wake",
    "backtest": "backtest.backtest",
    "policies": "settings.policies",
    "settings": "settings.settings",
    "verify": "verify.verify",
    "backup": "verify.backup",
    "rebuild": "verify.rebuild",
}
"""The module and the function of each, below `commands`."""


def option(words: str, about: str, default: Any = None, **more: Any) -> Any:
    """Return typer's option for words as `--name -n METAVAR`."""
    names = [word for word in words.split() if word.startswith("-")]
    metavar = [word for word in words.split() if not word.startswith("-")]
    return typer.Option(
        default, *names, metavar=metavar[0] if metavar else None, help=about, **more
    )


def flag(words: str, about: str) -> Any:
    return option(words, about, default=False)


def argument(metavar: str, about: str, default: Any = ..., **more: Any) -> Any:
    """Return typer's argument, which is required unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=about, **more)


DATABASE = option(
    "--db DATABASE",
    f"A file or postgresql://...; else ${DATABASE_VARIABLE}, or one in your data folder.",
)
NAMESPACE = option("--namespace NAME", "Where session names are looked up.")
AS_JSON = flag("--json", "Answer with one JSON document.")
SETTINGS_FILE = option(
    "--settings FILE",
    "A TOML file; else $CUTBANK_SETTINGS, or the one that `settings --path` names.",
)


class Answer:
    """What a verb answers: `document` with --json, else `text`: lines, and functions that print."""

    def __init__(
        self, document: Any, *text: str | Callable[[], None], is_good: bool = True
    ) -> None:
        self.document, self.text, self.is_good = document, text, is_good

    def print(self, *, as_json: bool) -> None:
        """Print the answer; raise typer.Exit(1) if it is not good."""
        if as_json:
            print_json(self.document)
        else:
            for part in self.text:
                print_text(part) if isinstance(part, str) else part()
        if not self.is_good:
            raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Invocation:
    db: str | None = None
    named: str | None = None
    as_json: bool = False
    settings_file: str | None = None

    @property
    def namespace(self) -> str:
        return self.named or "default"

    def merge(self, later: "Invocation") -> "Invocation":
        """Merge options before a verb with those after it, which take precedence."""
        given = {field.name: getattr(later, field.name) for field in fields(later)}
        return replace(
            self, **{name: value for name, value in given.items() if value not in {None, False}}
        )


def add_shared_options(verb: Callable[..., Answer | None]) -> Callable[..., None]:
    """Return a verb with its own parameters and the shared options, for typer; print its answer."""
    context, *shared = inspect.signature(_shared_signature).parameters.values()
    own = list(inspect.signature(verb).parameters.values())[1:]
    # A verb's own version of an option replaces the shared one.
    taken = {parameter.name for parameter in own}
    shared = [parameter for parameter in shared if parameter.name not in taken]

    def run(**words: Any) -> None:
        context = words.pop("context")
        given = {one.name: words.pop(one.name) for one in shared}
        if "namespace" in given:
            given["named"] = given.pop("namespace")
        call = context.obj.merge(Invocation(**given))
        if answer := verb(call, **words):
            answer.print(as_json=call.as_json)

    parameters = [context, *own, *shared]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = verb.__doc__
    return run


def _shared_signature(
    context: typer.Context,
    db: str | None = DATABASE,
    namespace: str | None = NAMESPACE,
    as_json: bool = AS_JSON,
    settings_file: str | None = SETTINGS_FILE,
) -> None:
    """Define the shared options by its signature; it is never called."""


class Program(TyperGroup):
    """The program, which loads the module of a verb when the verb is needed."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = dict.fromkeys(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - as the base has it
        if cmd_name not in VERBS:
            return None
        module, function = VERBS[cmd_name].split(".")
        verb = getattr(import_module(f"..commands.{module}", __package__), function)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cmd_name)(add_shared_options(verb))
        return get_command(app)
