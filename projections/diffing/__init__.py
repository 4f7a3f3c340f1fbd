"""What one view of a session has and another has not."""
