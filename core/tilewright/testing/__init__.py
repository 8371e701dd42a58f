"""The conformance kit and test data generators, for plugin authors and for Tilewright itself."""
