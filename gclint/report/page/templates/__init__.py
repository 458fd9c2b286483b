"""What the page is made of."""
