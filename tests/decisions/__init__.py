"""The decisions that gclint makes about code, each with both answers, asked from outside."""
