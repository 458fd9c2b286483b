"""Makes ``python -m gclint`` the same as ``gclint``, as far as what it needs is installed."""

import sys
from importlib.util import find_spec

_NEEDED = ("click", "libcst", "rich", *(() if sys.version_info >= (3, 11) else ("tomli",)))

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
