"""The command line as a program: `tilewright` and `python -m tilewright`.

For `-m` Python puts the current folder first on the path. It is taken off before anything else is imported, so that no
`random.py` that lies there is run. `tilewright` and `python -P -m tilewright` never have it there.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

import atexit
import os
import signal

TYPE_CHECKING = False  # without `typing`: until `main` hears Ctrl-C little should happen
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Ctrl-C ends it with one message, also while it is imported, or ends.

    Only before the call, while Python itself starts, it is Python that answers; and at the very end, when Python takes down
    what it has set up, nothing is left to interrupt.
    """
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background it is ignored
    if hears:
        signal.signal(signal.SIGINT, _leave)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the first is called last
    from tilewright.cli import main as run

    try:
        if hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _leave()
    finally:
        if hears:
            signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> NoReturn:
    """At once: an exception could be lost in what imports or tidies up, and there is nothing to keep."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
