"""How large messages are: as the store reckons them, or as a program would that counts texts."""
