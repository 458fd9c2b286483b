"""What says the same as something else: generated files, copies, and heirs."""
