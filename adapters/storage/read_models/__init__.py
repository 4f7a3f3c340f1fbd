"""Read models kept by sqlite-utils in a file of their own, which can be made anew at any time."""
