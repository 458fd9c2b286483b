"""A language server: findings, repairs and documentation for editors, from texts that are not saved yet."""
