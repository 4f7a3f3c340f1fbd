"""Run the command line: `python -m cutbank`."""

from .adapters.interfaces.command_line.cli import main

main()
