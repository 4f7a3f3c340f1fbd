"""Everything that touches the world: databases, files, programs, people."""
