"""One write for all files, or none: with a journal, so that what a kill interrupts is finished or undone."""
