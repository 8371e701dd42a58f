"""What Timeloop prints."""
