"""Vector layers: their counts by formula (`counts`) and by execution (`execution`), and the prices of both (`report`)."""
