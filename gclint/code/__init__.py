"""What is written: files, their text, the definitions in it, and names across files."""
