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
    "demo": ("demo.demo", "Show what this is: compact a long session, recall what left."),
    "import": ("import_.import_", "Import transcripts; of those imported before, what is new."),
    "reread": ("export.reread", "Read a kept source with today's reader, and compare."),
    "export": ("export.export", "Write a session in another format, or some as an archive."),
    "formats": ("export.formats", "List the formats of transcripts, and what each is good for."),
    "sessions": ("list_.sessions", "List the sessions: what they are about and what they cost."),
    "costs": ("list_.costs", "Show what calls of models cost."),
    "show": ("read.show", "Show the whole log, with what became of each block."),
    "view": ("read.view", "Show what a model is sent: the summary and the kept blocks."),
    "diff": ("lineage.diff", "Show what left the view, and which facts are lost to it."),
    "lineage": ("lineage.lineage", "Show which summary replaces what, compaction by compaction."),
    "blocks": ("read.blocks", "List the blocks that were appended, whatever a view shows."),
    "recall": ("read.recall", "Give back originals by their handles, in the view or not."),
    "search": ("read.search", "Find words in everything ever said, hidden or not."),
    "audit": ("audit.audit", "Tell what happened, and prove what models were sent."),
    "append": ("write.append", "Add blocks to a session; a new name opens one."),
    "pin": ("write.pin", "Keep blocks in the view, from the next boundary on."),
    "unpin": ("write.unpin", "Let pinned blocks leave the view again."),
    "hide": ("write.hide", "Take blocks out of the view. The log keeps them."),
    "retract": ("write.retract", "Take blocks back, as if not said. The log keeps them."),
    "delete": ("upkeep.delete", "Delete a session, as if never written; its name is free."),
    "erase": ("upkeep.erase", "Remove every byte of a session's content, or a subject's."),
    "retention": ("upkeep.retention", "Erase what is older than the settings keep."),
    "records": ("agent_program.records", "List a session's records, show one, put or remove it."),
    "fork": ("write.fork", "Open a session that shares this one's history so far."),
    "prepare": ("agent_program.prepare", "Show what to send to a model now."),
    "record-call": ("agent_program.record_call", "Record that a model answered to a view."),
    "overflowed": (
        "agent_program.handle_overflow",
        "Show what to send after a refusal for length.",
    ),
    "meter": ("agent_program.meter", "Show how full a session's context is."),
    "compact": ("compact.compact", "Compact now: a summary takes the place of old blocks."),
    "activate": ("compact.activate", "Serve the boundary that was prepared."),
    "revert": ("compact.revert", "Undo the newest compaction. What left is in the view again."),
    "replay": ("replay.replay", "Show what would have been sent, had another policy decided."),
    "idle": ("upkeep.idle", "Compact sessions that are at rest, until told to stop."),
    "wake": ("write.wake", "Say when the agent goes on by itself."),
    "backtest": ("backtest.backtest", "Compare policies by what they would have cost and lost."),
    "tune": ("tune.tune", "Search a policy's settings that are best for your sessions."),
    "policies": ("settings.policies", "List the policies with their presets and settings."),
    "settings": ("settings.settings", "Show each setting, its unit, and where it came from."),
    "verify": ("upkeep.verify", "Prove that nothing was lost and nothing changed."),
    "backup": ("upkeep.backup", "Copy the database into a new file, while others write on."),
    "rebuild": ("upkeep.rebuild", "Rebuild the read models from the log."),
}
"""The function of each, in a module below `commands`, and what it does.

So that help is printed without loading them; a docstring of a function adds what help says below.
"""


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


def add_shared_options(verb: Callable[..., Answer | None], about: str) -> Callable[..., None]:
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
    run.__doc__ = f"{about}\n\n{inspect.getdoc(verb) or ''}"
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
        path, about = VERBS[cmd_name]
        module, function = path.split(".")
        verb = getattr(import_module(f"..commands.{module}", __package__), function)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cmd_name)(add_shared_options(verb, about))
        return get_command(app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as the base has it
        with formatter.section("Commands"):
            formatter.write_dl([(verb, about) for verb, (_, about) in VERBS.items()])
