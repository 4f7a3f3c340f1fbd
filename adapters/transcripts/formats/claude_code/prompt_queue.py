"""Tracks prompts that the user typed while the agent worked."""

from ..reading.fields import JsonDict, get_field, require_field


class PromptQueue:
    """The queued prompts, according to `queue-operation` entries."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.told_otherwise = False
        """Whether this version writes attachments, which also hold these prompts."""

    def read_operation(self, entry: JsonDict) -> str:
        """Return the prompt that this operation sent to the model, if no other entry has it.

        `dequeue` starts a turn with a prompt, which follows as a user entry, and `popAll` returns
        the prompts to the user. `remove` adds a prompt to the current turn: newer versions also
        write an attachment, older ones only this.
        """
        operation = require_field(entry, "operation", str)
        content = get_field(entry, "content", str) or ""
        if operation == "enqueue":
            self.waiting.append(content)
        elif operation == "popAll":
            self.waiting.clear()
        elif operation in ("dequeue", "remove") and self.waiting:
            prompt = self.waiting.pop(0)
            if operation == "remove" and not self.told_otherwise:
                return prompt
        return ""
