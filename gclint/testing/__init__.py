"""What the tests of a model can ask of gclint."""
