"""The pictures in the README, taken anew: ``python3 -m tests.screenshots``.

Needs gclint with the extras ``report`` and ``verify``, Chromium, and a system with pseudo-terminals. Shows
what gclint prints of ``docs/examples`` on a terminal, and the page that ``gclint verify --report`` writes.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.segment import Segment
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.chromium import NoChromium, chromium
from tests.documented import DOCS, copied_examples

IMAGES = DOCS / "images"
TERMINAL = "terminal.svg"
REPORT = "report.png"

_COMMAND = ("gclint", "modeling_otter.py")
_COLUMNS = 100
_THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (72, 79, 88),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (230, 237, 243),
    ],
)
_WIDTH, _HEIGHT = 8.4, 19.0
"""Of a character."""
_MARGIN = 18.0
_SPACE = "\N{NO-BREAK SPACE}"
"""Viewers of SVG collapse others."""


class NoPicture(Exception):
    """The message says what is missing to take a picture."""


def take_terminal(path: Path) -> None:
    """Draw what a command prints on a terminal."""
    lines = [[Segment("$ ", None), Segment(" ".join(_COMMAND), None)], *_lines(printed_on_a_terminal())]
    path.write_text(_svg(lines), encoding="utf-8", newline="\n")


def printed_on_a_terminal() -> str:
    """Return what the command prints, with the codes for colours.

    Raises:
        NoPicture: the system has no pseudo-terminals.
    """
    if sys.platform == "win32":
        raise NoPicture("Windows has no pseudo-terminals to take a picture of")
    ours, theirs = os.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    with copied_examples() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", *_COMMAND],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**plain, "TERM": "xterm-256color", "COLORTERM": "", "COLUMNS": str(_COLUMNS)},
        )
        os.close(theirs)
        found = _read_all(ours)
        process.wait()
    return found.decode("utf-8").replace("\r\n", "\n")


def _read_all(terminal: int) -> bytes:
    found = b""
    try:
        while part := os.read(terminal, 65536):
            found += part
    except OSError:
        # Linux has no other way to say that nobody writes any more.
        pass
    finally:
        os.close(terminal)
    return found


def _lines(text: str) -> list[list[Segment]]:
    """Return the segments of each line as a terminal of this width shows it."""
    console = Console(width=_COLUMNS, color_system="standard", force_terminal=True)
    options = console.options.update(overflow="fold")
    return console.render_lines(Text.from_ansi(text.rstrip()), options, pad=False)


def _svg(lines: list[list[Segment]]) -> str:
    """Return a picture of lines; it uses the reader's own fonts."""
    width = _COLUMNS * _WIDTH + 2 * _MARGIN
    height = len(lines) * _HEIGHT + 2 * _MARGIN
    rows = "\n".join(_row(number, line) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">\n'
        f"<title>{html.escape(' '.join(_COMMAND))}</title>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{_THEME.background_color.hex}"/>\n'
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" '
        f'fill="{_THEME.foreground_color.hex}">\n{rows}\n</g>\n</svg>\n'
    )


def _row(number: int, line: list[Segment]) -> str:
    spans, column = [], 0
    for segment in line:
        text = segment.text.rstrip("\n")
        if text.strip():
            # Each span has its own place and length, whatever font the reader has.
            spans.append(
                f'<tspan x="{_MARGIN + column * _WIDTH:g}" textLength="{len(text) * _WIDTH:g}"'
                f"{_style(segment)}>{html.escape(text).replace(' ', _SPACE)}</tspan>"
            )
        column += len(text)
    return f'<text y="{_MARGIN + (number + 0.75) * _HEIGHT:g}">{"".join(spans)}</text>'


def _style(segment: Segment) -> str:
    if segment.style is None:
        return ""
    color = segment.style.color
    fill = f' fill="{color.get_truecolor(_THEME).hex}"' if color and not color.is_default else ""
    return f'{fill} font-weight="bold"' if segment.style.bold else fill


def take_report(path: Path) -> None:
    """Photograph what to do and the table of models, on the page of a run.

    Raises:
        NoPicture: the models cannot be run.
        NoChromium: there is no browser.
    """
    with copied_examples() as folder, chromium() as browser:
        page = browser.new_page(viewport={"width": 1000, "height": 1600})
        page.goto(_report(folder).as_uri())
        top = page.get_by_role("heading", name="What to do", exact=True).bounding_box()
        table = page.get_by_role("table").nth(1).bounding_box()
        assert top and table
        end = table["y"] + table["height"] + 6
        page.screenshot(
            path=path, clip={"x": 0, "y": top["y"] - 24, "width": 1000, "height": end - top["y"] + 24}
        )


def _report(folder: Path) -> Path:
    page = folder / "report.html"
    models = map(str, sorted(folder.glob("modeling_*.py")))
    command = [sys.executable, "-m", "gclint", "verify", *models, "--report", str(page)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    # The models of the examples fail: 1 is what is expected.
    if done.returncode != 1 or not page.is_file():
        raise NoPicture(f"the models did not run:\n{done.stdout}{done.stderr}")
    return page


def main() -> int:
    """Take all pictures; return 0 if that was possible."""
    IMAGES.mkdir(exist_ok=True)
    try:
        take_terminal(IMAGES / TERMINAL)
        take_report(IMAGES / REPORT)
    except (NoPicture, NoChromium) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
