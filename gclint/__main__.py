"""Makes ``python -m gclint`` the same as ``gclint``."""

from gclint.cli import main

main()
