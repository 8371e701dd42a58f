"""Functions behind `import tilewright`."""
