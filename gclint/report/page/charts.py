"""Charts: drawn once, when the page is made, as SVG in the page's own colours.

Vega draws them, by way of Altair. Its SVG has words for each mark, so a screen reader reads the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import altair
import vl_convert

from gclint.report.page.view import STANDARD, Chart, Page, State, Trade

_COLOURS: Mapping[State, str] = {
    "works": "#00c100",
    "partly": "#00c200",
    "fails": "#00c300",
    "not run": "#00c400",
}
_WORDS: Mapping[State, str] = {
    "works": "works",
    "partly": "fails in one mode",
    "fails": "fails",
    "not run": "not run",
}
_INK, _FAINT, _ACCENT = "#00c500", "#00c600", "#00c700"
_VARIABLES = {
    **{colour: f"var(--{state.replace(' ', '-')})" for state, colour in _COLOURS.items()},
    _INK: "var(--ink)",
    _FAINT: "var(--line)",
    _ACCENT: "var(--accent)",
}
"""Placeholder colours for those of the page, light and dark: the renderer does not know CSS variables."""

_WIDTH = 460
_FEW = 24
"""Up to so many classes get a bar each; otherwise the chart shows counts."""
_FEW_TICKS = 8
_HEIGHT = 220
_HEIGHTS = {"above": -8, "below": 2}
"""Where the names of points may be: pixels below them."""
_LETTER, _LINE = 6.5, 12
"""About how much room letters and lines need."""
_SVG = "http://www.w3.org/2000/svg"


def charts(page: Page) -> tuple[Chart, ...]:
    """Return the charts for which a page has data."""
    drawn = (*_outcomes(page), _saved(page), _depths(page), _trades(page))
    return tuple(chart for chart in drawn if chart is not None)


def _outcomes(page: Page) -> Iterator[Chart]:
    """Yield a chart for each group of columns."""
    for group, _ in page.groups:
        values = [
            {"scenario": column.name, "outcome": _WORDS[state], "classes": count, "place": place}
            for number, column in enumerate(page.columns)
            for place, state in enumerate(_WORDS)
            if column.group == group and (count := sum(row.cells[number].state == state for row in page.rows))
        ]
        names = [column.name for column in page.columns if column.group == group]
        title = "Outcomes by scenario" if group == STANDARD else f"Outcomes with {group}"
        if values:
            chart = _stacked(values, names)
            yield Chart(title, "Number of classes that work and fail in each.", _svg(chart, title))


def _stacked(values: list[dict[str, Any]], names: Sequence[str]) -> altair.Chart:
    totals = Counter[str]()
    for each in values:
        totals[each["scenario"]] += each["classes"]
    most = max(totals.values())
    seen = [state for state, word in _WORDS.items() if any(each["outcome"] == word for each in values)]
    chart: altair.Chart = (
        altair.Chart(_data(values))
        .mark_bar()
        .encode(
            x=altair.X("classes:Q", title="classes", axis=_whole_numbers(most)),
            y=altair.Y("scenario:N", title=None, sort=list(names)),
            order=altair.Order("place:Q"),
            color=altair.Color(
                "outcome:N",
                title=None,
                scale=altair.Scale(
                    domain=[_WORDS[each] for each in seen], range=[_COLOURS[each] for each in seen]
                ),
                legend=altair.Legend(orient="bottom"),
            ),
        )
    )
    return chart


def _saved(page: Page) -> Chart | None:
    names = Counter(row.name for row in page.rows)
    measured = [
        (row.name if names[row.name] == 1 else row.key, row.share)
        for row in page.rows
        if row.share is not None
    ]
    if not measured:
        return None
    title = "Kept for the backward pass with checkpointing"
    few = len(measured) <= _FEW
    chart = _bars(measured) if few else _counts([share for _, share in measured])
    caption = (
        f"What autograd keeps, as a part of what it keeps without, {'each' if few else 'and in how many'}. "
        "These are tiny models; `gclint memory` computes it for real sizes."
    )
    return Chart(title, caption, _svg(chart, title))


def _bars(measured: Iterable[tuple[str, float]]) -> altair.Chart:
    values = [{"class": name, "kept": share} for name, share in measured]
    chart: altair.Chart = (
        altair.Chart(_data(values))
        .mark_bar(color=_ACCENT)
        .encode(
            x=altair.X("kept:Q", title=None, axis=altair.Axis(format="%"), scale=altair.Scale(domainMin=0)),
            y=altair.Y("class:N", title=None, sort="-x"),
        )
    )
    return chart


def _counts(shares: Sequence[float]) -> altair.Chart:
    steps = [0] * 21
    for share in shares:
        steps[min(int(share * 20), 20)] += 1
    values = [
        {"from": step / 20, "to": (step + 1) / 20, "classes": count} for step, count in enumerate(steps)
    ]
    chart: altair.Chart = (
        altair.Chart(_data(values))
        .mark_bar(color=_ACCENT)
        .encode(
            x=altair.X(
                "from:Q", bin="binned", title="kept, of what is kept without", axis=altair.Axis(format="%")
            ),
            x2="to:Q",
            y=altair.Y("classes:Q", title="classes"),
        )
        .properties(height=200)
    )
    return chart


def _depths(page: Page) -> Chart | None:
    if not page.depths:
        return None
    values = [
        {"block": each.block, "bytes": each.size, "checkpointing": each.mode, "label": each.label}
        for each in page.depths
    ]
    modes = list(dict.fromkeys(each.mode for each in page.depths))
    chart: altair.Chart = (
        altair.Chart(_data(values))
        .mark_line(point=altair.OverlayMarkDef(size=28))
        .encode(
            x=altair.X(
                "block:Q",
                title="blocks that have run",
                scale=altair.Scale(zero=True),
                axis=_whole_numbers(max(each.block for each in page.depths)),
            ),
            y=altair.Y("bytes:Q", title="bytes saved", axis=_bytes_axis()),
            color=altair.Color(
                "checkpointing:N",
                title=None,
                scale=altair.Scale(
                    domain=modes, range=[_COLOURS["fails"], _ACCENT, _COLOURS["works"]][: len(modes)]
                ),
                legend=altair.Legend(orient="bottom", columns=1),
            ),
            strokeDash=altair.StrokeDash("checkpointing:N", legend=None, scale=altair.Scale(domain=modes)),
            description="label:N",
        )
        .properties(height=_HEIGHT)
    )
    title = "Bytes by depth"
    return Chart(title, "What is saved for the backward pass, as block after block runs.", _svg(chart, title))


def _trades(page: Page) -> Chart | None:
    if not page.trades:
        return None
    # There is room for names to the right of their points.
    most = max(each.more for each in page.trades) * 1.7 or 1
    heights = _heights_of_names(page.trades, most)
    values = [
        {
            "more": each.more,
            "bytes": each.size,
            "label": each.label,
            **{where: each.name if heights.get(each) == dy else "" for where, dy in _HEIGHTS.items()},
        }
        for each in page.trades
    ]
    room = altair.Scale(domain=[0, most])
    base = altair.Chart(_data(values)).encode(
        x=altair.X("more:Q", title="further FLOPs", scale=room, axis=altair.Axis(format="+%", tickCount=6)),
        y=altair.Y("bytes:Q", title="bytes saved", axis=_bytes_axis()),
        description="label:N",
    )
    points = base.mark_point(filled=True, size=70, color=_ACCENT)
    names = [
        base.mark_text(align="left", dx=8, dy=dy, color=_INK).encode(text=f"{where}:N")
        for where, dy in _HEIGHTS.items()
    ]
    title = "Memory against compute"
    caption = "What is saved on the device, and what recomputation costs, for each choice of layers."
    return Chart(title, caption, _svg(altair.layer(points, *names).properties(height=_HEIGHT), title))


def _heights_of_names(trades: Sequence[Trade], most: float) -> dict[Trade, int]:
    """Return the distance of each name from its point; a name that would cover another is left out."""
    largest = max(each.size for each in trades) or 1
    taken: list[tuple[float, float, float]] = []
    heights: dict[Trade, int] = {}
    for each in trades:
        left = each.more / most * _WIDTH
        right = left + len(each.name) * _LETTER
        for dy in _HEIGHTS.values():
            y = dy - each.size / largest * _HEIGHT
            if all(right < start or end < left or abs(y - other) > _LINE for start, end, other in taken):
                taken.append((left, right, y))
                heights[each] = dy
                break
    return heights


def _whole_numbers(most: int) -> altair.Axis:
    """Return an axis that has no ticks between numbers, of which there are few."""
    if most > _FEW_TICKS:
        return altair.Axis(format=",d")
    return altair.Axis(format="d", values=list(range(most + 1)))


def _bytes_axis() -> altair.Axis:
    return altair.Axis(format=".3~s")


def _data(values: list[dict[str, Any]]) -> altair.InlineData:
    return altair.InlineData(values=values)


def _svg(chart: altair.Chart | altair.LayerChart, title: str) -> str:
    """Draw a chart."""
    axis: dict[str, Any] = {
        "labelColor": _INK,
        "titleColor": _INK,
        "gridColor": _FAINT,
        "domainColor": _FAINT,
        "tickColor": _FAINT,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 190,
    }
    styled = (
        chart.properties(
            width=_WIDTH,
            autosize=altair.AutoSizeParams(type="fit-x", contains="padding"),
            background="transparent",
            description=title,
        )
        .configure_axis(**axis)
        .configure_legend(labelColor=_INK, titleColor=_INK, labelFontSize=11)
        .configure_view(stroke=None)
    )
    drawn = str(vl_convert.vegalite_to_svg(styled.to_dict()))
    for colour, variable in _VARIABLES.items():
        drawn = drawn.replace(colour, variable)
    return _fitted(drawn)


def _fitted(drawn: str) -> str:
    """Return an SVG that fills the width, in which marks have tooltips."""
    picture = ElementTree.fromstring(drawn)
    for size in ("width", "height"):
        del picture.attrib[size]
    for mark in picture.iter(f"{{{_SVG}}}path"):
        if label := mark.get("aria-label"):
            ElementTree.SubElement(mark, f"{{{_SVG}}}title").text = label
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(picture, encoding="unicode")
