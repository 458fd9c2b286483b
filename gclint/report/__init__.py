"""What the user gets to see; one module an output format."""
