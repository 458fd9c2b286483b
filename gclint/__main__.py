"""Makes ``python -m gclint`` the same as ``gclint``, as far as what it needs is installed."""

import os
import sys

# Python looks in the working directory first, and a repository may have modules of any name there. Only a
# checkout of gclint is run from there on purpose. What is imported above is imported at Python's own start.
try:
    _here = os.path.realpath(os.curdir)
    if sys.path and os.path.realpath(sys.path[0]) == _here != os.path.realpath(f"{__file__}/../.."):
        del sys.path[0]
except OSError:  # It has been deleted, so there is nothing in it.
    pass

from importlib.util import find_spec

_NEEDED = ("click", "libcst", "platformdirs", "rich", *(() if sys.version_info >= (3, 11) else ("tomli",)))

missing = [name for name in _NEEDED if find_spec(name) is None]
if missing:
    print(
        f"Error: gclint needs {', '.join(missing)}, which this Python does not have; "
        f"run '{sys.executable} -m pip install {' '.join(missing)}'.",
        file=sys.stderr,
    )
    sys.exit(2)

from gclint.launch import main  # noqa: E402 (it imports what may be missing)

main()
