"""What `import tilewright` offers, and the names and files that it takes."""
