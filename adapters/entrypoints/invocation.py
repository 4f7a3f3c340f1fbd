"""What every verb accepts, before its name or after it: the database, the namespace, JSON."""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from ...domain.errors import CutbankError, StorageError

if TYPE_CHECKING:
    from ..session_store import SessionStore, StoredSession

P = ParamSpec("P")

DATABASE_VARIABLE = "CUTBANK_DB"

Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PATH",
        help=f"The database; without it ${DATABASE_VARIABLE}, or one in your data folder.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", metavar="NAME", help="Where session names are looked up."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON document.")]


class AnswerIsNoError(CutbankError):
    """What was asked was right, and the answer is no."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What was asked for besides the verb and its own words."""

    db: str | None = None
    named: str | None = None
    """The namespace, where one was named."""
    as_json: bool = False

    @property
    def namespace(self) -> str:
        return self.named or "default"

    def then(self, later: "Invocation") -> "Invocation":
        """What was said before a verb and after it; what was said last counts."""
        return Invocation(
            db=self.db if later.db is None else later.db,
            named=self.named if later.named is None else later.named,
            as_json=self.as_json or later.as_json,
        )

    @contextmanager
    def store(self, *, creates: bool = False) -> Iterator["SessionStore"]:
        """The database, open for as long as the verb needs it; made only if the verb `creates`."""
        from ..session_store import open_store
        from ..sqlite.plain_errors import speaking_plainly

        name = self._database(creates=creates)
        with open_store(name) as store, speaking_plainly(name):
            yield store

    @contextmanager
    def session(self, key: str, *, creates: bool = False) -> Iterator["StoredSession"]:
        """One session of the database; opened if there is none and the verb `creates`."""
        with self.store(creates=creates) as store:
            yield store.session(key, namespace=self.namespace, create=creates)

    def _database(self, *, creates: bool) -> str:
        named = os.environ.get(DATABASE_VARIABLE) if self.db is None else self.db
        if self.db == "":
            raise StorageError("--db needs a path")
        if not named:
            return str(_in_data_folder())
        if named.startswith("file:"):
            return named  # SQLite's own notation, which may say that nothing is to be written
        path = Path(named)
        with suppress(RuntimeError):  # nobody's home: the name is taken as it stands
            path = path.expanduser()
        if not creates and not path.exists():
            # Opening makes a file: a slip in the path would be answered by an empty database.
            raise StorageError(f"{path} does not exist: `import`, `append` and `demo` make it")
        return str(path)


def accepting_all_options(
    verb: Callable[Concatenate[Invocation, P], None],
) -> Callable[..., None]:
    """A verb as typer takes it: its own words, and the options that every verb has."""

    def run(**words: Any) -> None:
        context = words.pop("context")
        said = Invocation(words.pop("db"), words.pop("namespace"), words.pop("as_json"))
        verb(context.obj.then(said), **words)  # type: ignore[call-arg]

    context, *shared = inspect.signature(_every_verb).parameters.values()
    own = list(inspect.signature(verb).parameters.values())[1:]
    parameters = [context, *own, *shared]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = verb.__doc__
    return run


def _every_verb(
    context: typer.Context,
    db: Database = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """What is added to the words of each verb; never called."""


def _in_data_folder() -> Path:
    """The database of somebody who names none."""
    from platformdirs import user_data_path  # noqa: PLC0415 - only who names none

    folder = user_data_path("cutbank", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be made ({error.strerror}): name a database with --db"
        ) from None
    return folder / "cutbank.db"
