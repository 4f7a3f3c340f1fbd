"""Takes an HTML page apart, and refuses one in which a browser would have to guess."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "input"}


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.texts: dict[str, str] = {}
        self.within: list[str] = []
        """The ids of what is open, outermost first."""
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert len(given) == len(attrs), f"{tag} has an attribute twice"
        self.elements.append((tag, given))
        if tag not in VOID:
            self.open.append(tag)
            self.within.append(given.get("id", ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self.within.pop()

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.words.append(data)
        for id in filter(None, self.within):
            self.texts[id] = self.texts.get(id, "") + data

    def named(self, tag: str) -> list[dict[str, str]]:
        return [given for name, given in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        return [given["id"] for _, given in self.elements if given.get("id")]

    @property
    def said(self) -> str:
        return "".join(self.words)

    @property
    def documents(self) -> dict[str, str]:
        return {one["id"]: self.texts[one["id"]] for one in self.named("script") if "id" in one}
