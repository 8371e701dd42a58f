"""`python -m tilewright`: the command line.

For `-m` Python puts the current folder first on the path. It is taken off before anything else is imported, so that no
`random.py` that lies there is run. `tilewright` and `python -P -m tilewright` never have it there.
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]

    from tilewright.cli import main

    main()
