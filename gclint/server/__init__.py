"""The language server: findings, repairs and documentation for editors, also for unsaved text."""
