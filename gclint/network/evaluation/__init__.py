"""What names, expressions and classes of a model's code stand for: mutually recursive by nature, one room."""
