"""What other tools found and printed, as typed objects."""
