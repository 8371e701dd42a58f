"""What a run leaves behind of a layer: mapping file and certificate."""
