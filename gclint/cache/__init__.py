"""Results of earlier runs, each with everything that was read for it: valid until any of that changes."""
