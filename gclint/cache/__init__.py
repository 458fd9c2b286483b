"""What earlier runs found out, and what they had read for it: while that is the same, so is the rest."""
