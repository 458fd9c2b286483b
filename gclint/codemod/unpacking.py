"""Passing the tensors of a tuple to a block one by one, as arguments of their own."""

from __future__ import annotations

import re
from pathlib import Path

import libcst as cst

from gclint.codemod.signature import NAMING
from gclint.codemod.sites import SiteDefects
from gclint.finding import Applicability, Edit, Fix, Part, Refusal, Repair
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import is_docstring
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.source.file import UnreadableFile
from gclint.source.fragment import Fragment, parse_definition
from gclint.source.generated import is_modular, modeling_path
from gclint.source.paths import shown
from gclint.source.words import has_word

_TUPLE = re.compile(r"(?:typing\.)?[Tt]uple\[(.*)\]", re.DOTALL)
_TENSOR = re.compile(r"(?:torch\.)?Tensor")
_OTHERS = (
    "the block has to take the tensors one by one, since reentrant checkpointing does not look inside a "
    "container"
)


def unpacked(defects: SiteDefects) -> Fix | Refusal:
    """Return the fix that lets a block take the tensors of a tuple one by one, or why there is none."""
    network, site = defects.network, defects.site
    if len(defects.nested_activations) != 1 or len(defects.bindings) != 1:
        return Refusal(_OTHERS)
    (bound,) = defects.nested_activations
    block = defects.bindings[0].block
    method = block.definition.method("forward")
    parameter = bound.parameter
    is_plain = isinstance(bound.arg.value, cst.Name) and bound.by_position and bound.arg in site.args
    if method is None or parameter is None or parameter.default is not None or not is_plain:
        return Refusal(_OTHERS)
    other = _other_user(network, block)
    if other is not None:
        return Refusal(f"{_OTHERS}; {other} with the tuple")
    fragment = parse_definition(block.file, method)
    changed = _signature(fragment, parameter.name)
    if changed is None:
        return Refusal(_OTHERS)
    start, _ = site.span(bound.arg)
    call = Edit(site.fragment.file.path, start, start, "*")
    return Fix(
        f"Pass the tensors of `{parameter.name}` to `{block.name}.forward` one by one",
        (call, *changed),
        Applicability.UNSAFE,
        "the fix changes the signature of the block: callers outside the given files that pass the tuple "
        "break",
        (Repair(Part.CALL, site.fragment.file.path, *site.span(site.call)),),
    )


def _other_user(network: Network, block: ClassInfo) -> str | None:
    """Return what else calls the block's `forward`, or inherits or overrides it, in words."""
    if block.file is not network.file:
        return f"`{block.name}` in {shown(block.file.path)} is called"
    for info in subclasses(network.project, block):
        if info.name != block.name:
            return f"`{info.name}` in {shown(info.file.path)} inherits it"
    if len([site for site in network.sites_running((block.name,)) if block in site.blocks]) > 1:
        return "other calls in the file run it"
    own = {network.file.path, network.project.identify(modeling_path(network.file.path))}
    for path in _naming(network, block.name):
        if path not in own and not (
            is_modular(path) and network.project.identify(modeling_path(path)) in own
        ):
            return f"{shown(path)} names it"
    return None


def _naming(network: Network, name: str) -> list[Path]:
    """Return the given files that have a word."""
    found = []
    with network.project.read_for(None):
        for path in network.project.paths:
            try:
                text = network.project.file(path).text
                if has_word(text, name, 0, len(text)):
                    found.append(path)
            except (OSError, UnreadableFile):
                continue  # The run reports it; it runs nothing.
    network.project.questions.ask(network.file.path, NAMING, name, found)
    return found


def _signature(fragment: Fragment, name: str) -> list[Edit] | None:
    """Return what replaces a parameter by several, and makes the tuple of them at the beginning.

    None where its annotation does not say how many tensors the tuple has.
    """
    function = fragment.body[0]
    if not isinstance(function, cst.FunctionDef) or not isinstance(function.body, cst.IndentedBlock):
        return None
    param = next((each for each in function.params.params if each.name.value == name), None)
    first = next((each for each in function.body.body if not is_docstring(each)), None)
    if param is None or param.annotation is None or first is None:
        return None
    match = _TUPLE.fullmatch(fragment.source(param.annotation.annotation).strip())
    items = [] if match is None else [each.strip() for each in match[1].split(",") if each.strip()]
    if not items or not all(map(_TENSOR.fullmatch, items)):
        return None
    file = fragment.file
    (start, _), (_, end) = fragment.span(param), fragment.span(param.annotation.annotation)
    indent = file.text[file.line_starts[file.position(start).row - 1] : start]
    # One below the other where each has a line of its own.
    joint = f",{file.newline}{indent}" if not indent.strip() else ", "
    names = [f"{name}_{number}" for number in range(len(items))]
    made, _ = fragment.span(first)
    step = file.text[file.line_starts[file.position(made).row - 1] : made]
    return [
        Edit(file.path, start, end, joint.join(map("{}: {}".format, names, items))),
        Edit(
            file.path,
            made,
            made,
            f"{name} = ({', '.join(names)}{',' if len(names) == 1 else ''}){file.newline}{step}",
        ),
    ]
