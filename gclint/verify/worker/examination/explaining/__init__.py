"""What failures come from: suspects, each of which has to show what was seen of it."""
