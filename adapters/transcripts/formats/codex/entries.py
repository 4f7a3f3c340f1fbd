"""Lists the line types of Codex rollouts, and recognizes texts that the user did not type."""

import re

FORMAT_NAME = "codex"
CODEX_PROVIDER = "openai-responses"
"""The provider whose format the rollout's response items have."""

PASSTHROUGH_FIELD = "internal_chat_message_metadata_passthrough"
"""Codex's own metadata on an item, not part of the provider's data."""

RAW_LINE_TYPES = frozenset(
    {
        "inter_agent_communication_metadata",
        "realtime_item",
        "retained_context",
        "security_risk_score",
        "world_state",
    }
)
"""Types of lines that no model was sent unchanged, but that Codex may need to resume."""

REPEATED_LINE = "shown to the person; another line says the same"
_RUNNING = "shown while a tool ran; its result is a response item"
_STREAMED = "a piece of a message that comes again whole"
PROGRAM_STATE = "state of the program"
_FOR_THE_PERSON = "shown to the person only"
_QUESTION = "a question to the person; what came of it is in the tool's result"
_AGENTS = "shown of a sub-agent, which has a rollout of its own"

NO_USAGE = "a token count without usage"
REPEATED_USAGE = "usage that was told before"

TURN_END_EVENTS = frozenset({"task_complete", "turn_complete"})
"""Events that end a turn; only they report its errors."""
MCP_END_EVENT = "mcp_tool_call_end"
"""The event with the answer of an MCP tool; usually an item repeats it."""

EVENT_REASONS = {
    **dict.fromkeys(
        (
            *("agent_message", "agent_reasoning", "agent_reasoning_raw_content", "user_message"),
            *("context_compacted", "raw_response_item", "item_completed", "view_image_tool_call"),
            *("dynamic_tool_call_request", "dynamic_tool_call_response", "web_search_end"),
            *("image_generation_end", "exec_command_end", "patch_apply_end"),
            *("plan_update", "entered_review_mode", "exited_review_mode"),
        ),
        REPEATED_LINE,
    ),
    **dict.fromkeys(
        (
            *("exec_command_begin", "exec_command_output_delta", "terminal_interaction"),
            *("mcp_tool_call_begin", "web_search_begin", "image_generation_begin"),
            *("patch_apply_begin", "patch_apply_updated", "hook_started", "hook_completed"),
            *("item_started", "turn_diff"),
        ),
        _RUNNING,
    ),
    **dict.fromkeys(
        (
            *("agent_message_delta", "agent_message_content_delta", "agent_reasoning_delta"),
            *("agent_reasoning_raw_content_delta", "agent_reasoning_section_break"),
            *("plan_delta", "reasoning_content_delta", "reasoning_raw_content_delta"),
        ),
        _STREAMED,
    ),
    **dict.fromkeys(
        (
            *("task_started", "turn_started", "turn_aborted"),
            *("session_configured", "thread_settings_applied", "thread_goal_updated"),
            *("mcp_startup_update", "mcp_startup_complete", "shutdown_complete"),
            *("undo_started", "undo_completed", "skills_update_available"),
            *("mcp_list_tools_response", "list_custom_prompts_response", "list_skills_response"),
            *("get_history_entry_response", "realtime_conversation_started"),
            *("realtime_conversation_realtime", "realtime_conversation_closed"),
            "realtime_conversation_sdp",
        ),
        PROGRAM_STATE,
    ),
    **dict.fromkeys(
        (
            *("error", "warning", "guardian_warning", "stream_error", "deprecation_notice"),
            *("background_event", "model_reroute", "model_verification", "guardian_assessment"),
        ),
        _FOR_THE_PERSON,
    ),
    **dict.fromkeys(
        (
            *("exec_approval_request", "apply_patch_approval_request", "request_permissions"),
            *("request_user_input", "elicitation_request"),
        ),
        _QUESTION,
    ),
    **dict.fromkeys(
        (
            *("collab_agent_spawn_begin", "collab_agent_spawn_end", "collab_waiting_begin"),
            *("collab_agent_interaction_begin", "collab_agent_interaction_end"),
            *("collab_waiting_end", "collab_close_begin", "collab_close_end"),
            *("collab_resume_begin", "collab_resume_end", "sub_agent_activity"),
        ),
        _AGENTS,
    ),
}
"""Types of `event_msg` without session content, and the reasons."""

_TAGS = (
    "apps_instructions collaboration_mode environment_context environments_instructions "
    "goal_context hook_prompt model_switch personality_spec plugins_instructions "
    "realtime_conversation recommended_plugins skill skills_instructions subagent_notification "
    "turn_aborted user_action user_instructions user_shell_command"
)
_INJECTED = re.compile(
    rf"<(?P<tag>{'|'.join(_TAGS.split())}|permissions instructions)\b[^>]*>.*</(?P=tag)>"
    r"|# AGENTS\.md instructions\b.*"
    r"|<image(?: name=[^>]*)?>|</image>",
    re.DOTALL,
)


def is_injected(text: str) -> bool:
    """Return whether Codex wrote it in the user's role."""
    # The beginning of a text decides whether its remaining megabytes are searched.
    stripped = text.strip()
    return stripped[:1] in "<#" and _INJECTED.fullmatch(stripped) is not None
