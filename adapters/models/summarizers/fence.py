"""Fences data in a prompt, so that nothing inside can end the fence or imitate a block."""

from collections.abc import Iterable
from hashlib import sha256

from .conversation_text import Passage


class Fence:
    """Marks with a word that occurs in none of the fenced texts.

    The word is derived from the texts, so the same prompt is always the same request.
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
        """Return the text fenced under that name."""
        return f"<{name}-{self.word}>\n{text}\n</{name}-{self.word}>"

    def wrap_passages(self, passages: Iterable[Passage]) -> str:
        """Return the passages, each under a line that only this fence can produce."""
        return "\n".join(
            f"{self.word} #{passage.position} {passage.head}:\n{passage.body}"
            for passage in passages
        )


def make_fence(passages: Iterable[Passage], *texts: str) -> Fence:
    return Fence([*texts, *(text for p in passages for text in (p.head, p.body))])
