"""Marks data in a prompt so that nothing within can end it, or begin a block of its own."""

from collections.abc import Iterable
from hashlib import sha256

from .conversation_text import Passage


class Fence:
    """Marks that hold a word which none of the fenced texts has in it.

    The word is made of the texts: the same prompt is the same request each time.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        texts = tuple(texts)
        digest = sha256()
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass"))
        self.word = digest.hexdigest()[:8]
        while any(self.word in text for text in texts):
            digest.update(b"again")
            self.word = digest.hexdigest()[:8]

    def wrap_text(self, name: str, text: str) -> str:
        """A text as data of that name."""
        return f"<{name}-{self.word}>\n{text}\n</{name}-{self.word}>"

    def wrap_passages(self, passages: Iterable[Passage]) -> str:
        """Blocks, each under a line that only this fence can have written."""
        return "\n".join(
            f"{self.word} #{passage.position} {passage.head}:\n{passage.body}"
            for passage in passages
        )


def make_fence(passages: Iterable[Passage], *texts: str) -> Fence:
    """A fence for these blocks and texts."""
    return Fence([*texts, *(text for p in passages for text in (p.head, p.body))])
