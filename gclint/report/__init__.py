"""Output for users and programs: one module for each format."""
