"""Entry point of the command line, for `tilewright` and `python -m tilewright`.

With `-m`, Python puts the current folder first on the module path. It is removed before other imports, so that a local
`random.py` cannot be run. `tilewright` and `python -P -m tilewright` never add it.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

import atexit
import gc
import os
import signal

TYPE_CHECKING = False  # without `typing`: little should happen before `main` handles Ctrl-C
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line. Ctrl-C ends it with one message, also during imports and at exit.

    Before this call, while Python starts, Python itself handles Ctrl-C. At the very end, while
    Python shuts down, Ctrl-C is ignored.
    """
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # SIGINT is ignored in background processes
    if hears:
        signal.signal(signal.SIGINT, _leave)
        # handlers run in reverse order, so this one runs last
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    # modules and schemas make many objects that stay: at 700 new ones, collections take a tenth of a short command
    gc.set_threshold(50_000)
    from tilewright.application.cli import main as run

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
    """Exit at once. An exception could be lost during an import or a cleanup, and no result needs saving."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
