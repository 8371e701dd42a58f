"""What is asked of hardware itself: components from sizes."""
