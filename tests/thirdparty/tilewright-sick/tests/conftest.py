from tilewright_sick.commands import own_cache, process, run

__all__ = ["own_cache", "process", "run"]
