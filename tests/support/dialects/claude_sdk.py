"""The text of a shortened tool result as the Claude Agent SDK shows it."""

CUT_OFF = "\n... [output truncated]"
"""What the original writes behind the beginning of a shortened result."""


def pruned_text(text: str, most: int) -> str:
    """A shortened result as the original shows it: so many bytes, and a mark.

    A character that is cut in two shows as replacement characters, one for each byte that is left
    of it.
    """
    beginning = text.encode("utf-8", "surrogatepass")[:most]
    whole = beginning.decode("utf-8", "ignore")
    broken = len(beginning) - len(whole.encode())
    return f"{whole}{'�' * broken}{CUT_OFF}"
