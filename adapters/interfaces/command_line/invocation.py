"""Defines the options of every verb, before or after its name: database, namespace and others."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ....domain.errors import CutbankError

DATABASE_VARIABLE = "CUTBANK_DB"

Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="DATABASE",
        help=f"A file or postgresql://...; else ${DATABASE_VARIABLE}, or one in your data folder.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Where session names are looked up."),
]
SettingsFile = Annotated[
    str | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="A TOML file; else $CUTBANK_SETTINGS, or the one that `settings --path` names.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON document.")]


class NegativeAnswerError(CutbankError):
    """A negative answer to a correct request."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The values of the shared options."""

    db: str | None = None
    named: str | None = None
    as_json: bool = False
    settings_file: str | None = None

    @property
    def namespace(self) -> str:
        return self.named or "default"

    def merge(self, later: "Invocation") -> "Invocation":
        """Merge options before a verb with those after it, which take precedence."""
        return Invocation(
            db=self.db if later.db is None else later.db,
            named=self.named if later.named is None else later.named,
            as_json=self.as_json or later.as_json,
            settings_file=(
                self.settings_file if later.settings_file is None else later.settings_file
            ),
        )


SHARED_OPTIONS = {
    "db": "db",
    "namespace": "named",
    "as_json": "as_json",
    "settings_file": "settings_file",
}
"""The field of each shared option."""


def add_shared_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb with its own parameters and the shared options, for typer."""

    context, *shared = inspect.signature(_shared_signature).parameters.values()
    own = list(inspect.signature(verb).parameters.values())[1:]
    # A verb's own version of an option replaces the shared one.
    taken = {parameter.name for parameter in own}
    shared = [parameter for parameter in shared if parameter.name not in taken]

    def run(**words: Any) -> None:
        context = words.pop("context")
        said = {SHARED_OPTIONS[one.name]: words.pop(one.name) for one in shared}
        verb(context.obj.merge(Invocation(**said)), **words)

    parameters = [context, *own, *shared]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = verb.__doc__
    return run


def _shared_signature(
    context: typer.Context,
    db: Database = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
    settings_file: SettingsFile = None,
) -> None:
    """Define the shared options by its signature; it is never called."""
