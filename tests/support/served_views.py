"""What an older version served, as the golden files say it, compared with what is served today."""

from typing import Any

from cutbank import SessionStore


def check_served(store: SessionStore, served: list[dict[str, Any]]) -> None:
    for then in served:
        view = store.session(then["session"], create=False).view(
            at=then["at"], lineage=then["lineage"], lineage_version=then["lineage_version"]
        )
        assert [[entry.position, entry.text[:200]] for entry in view.entries] == then["entries"]
        assert (view.summary.text if view.summary else None) == then["summary"]
        assert view.system_prompt == then["system"]
        assert view.fingerprint == then["fingerprint"]
