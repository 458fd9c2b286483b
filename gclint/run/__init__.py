"""Rules over files: what they find, what is suppressed or known, what copies need, and fixes in memory."""
