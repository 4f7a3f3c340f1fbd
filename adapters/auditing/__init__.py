"""What happened in a session: what a model saw, what left its view, and what stands for it."""
