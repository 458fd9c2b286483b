"""What runs keep, and when it is not believed."""
