"""One page of a session to send to somebody: it needs no network, and no program."""
