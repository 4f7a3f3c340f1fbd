"""Message arrays as providers take them, one module a provider: `FORMAT` is in each."""
