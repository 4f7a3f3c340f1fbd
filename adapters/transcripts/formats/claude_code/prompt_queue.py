"""Prompts that a person typed while the agent worked."""

from ..reading.fields import JsonDict, get_field, require_field


class PromptQueue:
    """The prompts that wait, as `queue-operation` entries tell it."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.told_otherwise = False
        """Whether the version writes attachments, which tell of these prompts as well."""

    def read_operation(self, entry: JsonDict) -> str:
        """The prompt that the model was given by this operation, if no other entry says so.

        `dequeue` makes a turn of a prompt, which follows as a user's entry, and `popAll` hands
        them back to the person. `remove` adds a prompt to the turn that runs: newer versions say
        so by an attachment, older ones only here.
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
