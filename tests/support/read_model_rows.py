"""All that a file of read models holds, to be compared: every row, and every word of the index."""

from typing import Any

from cutbank.adapters.storage.read_models.read_models import ReadModels

OF_THE_FILE = {"format"}


def rows_of(models: ReadModels) -> dict[str, list[tuple[Any, ...]]]:
    tables = {
        name
        for (name,) in models.file.fetch_rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not name.startswith("blocks_fts")
    }
    found = {
        name: models.file.fetch_rows(f"SELECT * FROM {name}")  # noqa: S608 - our names
        for name in tables - OF_THE_FILE
    }
    found["words"] = words_of(models)
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def words_of(models: ReadModels) -> list[tuple[Any, ...]]:
    """Each word in the index: where it stands, and how often."""
    models.file.fetch_rows(
        "CREATE VIRTUAL TABLE IF NOT EXISTS"
        " temp.words USING fts5vocab(main, 'blocks_fts', 'instance')"
    )
    return models.file.fetch_rows("SELECT * FROM temp.words")


def table(models: ReadModels, name: str, where: str = "1") -> list[dict[str, Any]]:
    query = f"SELECT * FROM {name} WHERE {where} ORDER BY id"  # noqa: S608 - our names
    return list(models.file.db.query(query))
