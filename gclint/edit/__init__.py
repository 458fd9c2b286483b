"""How code is rewritten: edits that leave every other byte as it was."""
