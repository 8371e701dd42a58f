"""The application above the core: searches, files, pages and commands. No plugin imports it."""
