"""Where a policy cuts: walks back over a budget, and where they may come to rest."""
