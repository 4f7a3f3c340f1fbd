"""Translates errors of PostgreSQL and libpq into remedies."""

CONNECTION_LOST_REMEDY = (
    "went away in mid-transaction: start the server again; what was acknowledged is stored"
)

REMEDIES: tuple[tuple[str, str], ...] = (
    ("servname not supported", "cannot be reached: a port is a number; check the address"),
    ("resolve host", "cannot be reached: there is no host of that name; check the address"),
    (
        "connection refused",
        "cannot be reached: nothing listens there; check the address, or start the server",
    ),
    (
        "no such file or directory",
        "cannot be reached: there is no socket in that folder; check it, or start the server",
    ),
    ("timeout expired", "cannot be reached: the host does not answer; check the address"),
    ("timed out", "cannot be reached: the host does not answer; check the address"),
    ("no route to host", "cannot be reached: there is no way to that host; check the address"),
    ("password authentication failed", "refused that user and password: check both"),
    ('fatal:  role "', "knows no such user: check the user in the address"),
    ('fatal:  database "', "has no such database: check the address, or create it with createdb"),
    ("no password supplied", "wants a password: put it into the address, or into ~/.pgpass"),
    ("no pg_hba.conf entry", "refuses that user from this machine: ask the server's administrator"),
    ("permission denied", "does not let that user do this: grant it what it needs on the schema"),
    ("too many clients", "has no connection left: close some, or raise max_connections"),
    ("connection slots are reserved", "has no connection left: close some, or raise it"),
    ("starting up", "is starting up: try again in a moment"),
    ("shutting down", "is shutting down: start the server again; what was stored is there"),
    ("read-only transaction", "is read-only: give the address of the primary server"),
    ("no space left on device", "cannot grow, the server's disk is full: free some space there"),
    ("index row", "cannot look up a name as long as this: keep names below 2,000 bytes"),
    ("cannot contain nul", "cannot store the character NUL in a name: leave it out"),
    (
        "invalid page in block",
        "is damaged: restore a backup, or look at what is left with pg_amcheck",
    ),
    ("server closed the connection", CONNECTION_LOST_REMEDY),
    ("terminating connection", CONNECTION_LOST_REMEDY),
    ("connection is lost", CONNECTION_LOST_REMEDY),
    ("consuming input failed", CONNECTION_LOST_REMEDY),
    ("connection not open", CONNECTION_LOST_REMEDY),
    ("the connection is closed", CONNECTION_LOST_REMEDY),
)
