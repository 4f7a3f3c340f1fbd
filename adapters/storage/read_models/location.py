"""Where the read models of a log stand: beside its file, or in this machine's state folder."""

import os
from hashlib import blake2b
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from platformdirs import user_state_path

from ....domain.errors import StorageError
from ..event_log.addresses import is_postgres, shown
from ..private_files import make_folder
from ..sqlite.address import address_of, is_in_memory


def read_models_of(address: str) -> str:
    """What SQLite is told to open for the log at `address`.

    A log in memory has read models in memory. A log on a server, or in a folder that cannot be
    written, has those of this machine and user in the state folder.
    """
    if is_postgres(address):
        # By any password it is the same log.
        return str(_in_state_folder(shown(address)))
    if is_in_memory(address):
        return address_of(address)
    path, said = Path(address), dict[str, list[str]]()
    if address.startswith("file:"):
        uri = urlsplit(address)
        path, said = Path(unquote(uri.path)), parse_qs(uri.query)
    path = path.resolve()
    is_read_only = said.get("mode") == ["ro"] or "immutable" in said
    if is_read_only or not os.access(path.parent, os.W_OK):
        return str(_in_state_folder(str(path)))
    return str(path.with_name(f"{path.stem}.read{path.suffix or '.db'}"))


def _in_state_folder(name: str) -> Path:
    folder = user_state_path("cutbank", appauthor=False)
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(
            f"{folder}, where read models are kept, cannot be made ({error.strerror}):"
            " set XDG_STATE_HOME to a folder that can be written"
        ) from None
    return folder / f"{blake2b(name.encode('utf-8', 'replace'), digest_size=16).hexdigest()}.db"
