"""Many policies over many sessions: what each cost, what it lost, and what may be concluded."""
