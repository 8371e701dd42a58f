"""Cost model `timeloop_binary`: Timeloop itself, run as a program."""
