"""What says the same as something else: generated files and copies."""
