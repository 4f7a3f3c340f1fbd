"""What writers of several formats share: the session on its way out, entry by entry."""
