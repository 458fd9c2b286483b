"""What a block's new base class means for whatever enables checkpointing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.neighbouring_files import files_mentioning
from gclint.code.paths import behind_line
from gclint.code.questions import Topic
from gclint.code.remembered import remembered
from gclint.edit.removal import remove_functions
from gclint.edit.takeover import takeover_doubts
from gclint.finding import Edit
from gclint.model.attributes import spaces_of
from gclint.model.importing import names_any
from gclint.model.looking import is_handed_on, is_only_looked_into, is_singled_out
from gclint.model.usage import READING_BY_NAME
from gclint.network.construction import flag_doubt, flag_settings
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.model import Network
from gclint.network.outside import LIBRARY_SWITCH
from gclint.network.override import OldOverride, old_overrides
from gclint.network.runsite import RunSite
from gclint.network.support import models_running
from gclint.network.switch import other_switch
from gclint.network.switch_uses import uses_of

FINDING = frozenset(("apply", "modules", "named_modules", "children", "named_children"))
"""The methods by which torch and the library find the parts whose mode or flag they set."""
_WORDS = sorted(READING_BY_NAME)
_MOST_FILES = 40


def switch_obstacle(network: Network, sites: Sequence[RunSite]) -> str | None:
    """Return why blocks would not be enabled any more as checkpointing layers; None where they would.

    Args:
        network: the file.
        sites: the calls that run the blocks.
    """
    for override in removed_overrides(sites):
        if override.named is None:
            return f"{override.description}, and does more than that"
    switch = other_switch(network.project, sites)
    if switch is None:
        return None
    return (
        f"{switch.seen_from(network.file)}, but a `{CHECKPOINTING_BASE}` is switched on by "
        f"`gradient_checkpointing_enable()` alone; first {switch.advice}"
    )


def removed_overrides(sites: Sequence[RunSite]) -> tuple[OldOverride, ...]:
    """Return the overrides of the old interface that go: the library has to set the flags of blocks."""
    owners = dict.fromkeys(site.owner for site in sites)
    return old_overrides(model for owner in owners for model in models_running(owner))


def remove_override(override: OldOverride) -> Edit:
    """Return the edit that takes an override away, so that the library sets the flags."""
    (edit,) = remove_functions(override.model.file, (override.method,))
    return edit


def override_doubts(override: OldOverride) -> list[str]:
    """Return what would change with an override that goes, besides the layers' flags."""
    others = list(override.unnamed())
    doubts = []
    if others:
        doubts.append(
            f"without the override of `{override.model.name}`, checkpointing is also switched on in "
            f"{others[0]}, where it is off today"
        )
    doubts += [_used(override, place) for place in islice(uses_of(override), 1)]
    for info in (override.model, *override.parts):
        own = FINDING.intersection(method.name for method in info.methods())
        if own:
            doubts.append(f"`{info.name}` has its own `{min(own)}`, which may leave out layers")
    for info in override.named or ():
        if not any(setting.is_librarys for setting in flag_settings(info)):
            doubts.append(
                f"only this override sets `{info.name}.gradient_checkpointing`; first set it to False in "
                "`__init__`"
            )
        else:
            doubts += filter(None, (flag_doubt(info),))
    doubts += [
        f"only this override sets the flag of `{name}`, as far as is known; first look where one is made"
        for name in override.not_found
    ]
    return [*doubts, *takeover_doubts(override)]


def _used(override: OldOverride, place: str) -> str:
    named = f"that of `{override.model.name}`"
    return f"`{LIBRARY_SWITCH}` is used on {place}, and would be missing there if it is {named}"


def computed_doubts(override: OldOverride) -> Iterator[str]:
    """Yield where an override may be used by a name that is no literal, if it may be.

    That is in the override's file, or in one that names its class or module. In another file, only a name
    counts that is known, and only in small projects: all that reads attributes by names has to be followed,
    so ask only if nothing else is in doubt.
    """
    model, name = override.model, override.method.name
    project = model.module.library.project
    files = project.chosen(files_mentioning(project, *_WORDS), COMPUTING, "", model.file)
    for file in files:
        spaces = spaces_of(project)
        is_near = file is model.file or names_any(spaces, file, {model.file}, {model.name})
        if not is_near and len(files) > _MOST_FILES:
            continue
        space = spaces.of(file)
        project.consult(model.file, file.path)
        for node in () if space.tree is None else _computed_names(space.tree):
            names = space.names_used(node) if may_spell(_template(node), name) else frozenset()
            if is_near or is_singled_out(space.tree, _name(node), name) if names is None else name in names:
                where = behind_line(file.path, model.file.path)
                yield _used(override, f"line {file.position(space.offset(node)).row}{where}")
                return


@remembered
def _has_computed_names(file: SourceFile) -> bool:
    tree = file.tree if computes_names(file) else None
    return tree is not None and bool(_computed_names(tree.module))


def _computed_names(tree: ast.Module) -> tuple[ast.Call, ...]:
    """Return the calls of a module that read an attribute whose name is no literal, and may call it then."""
    return tuple(
        each
        for each in _computing(tree)
        if not is_only_looked_into(tree, each) and not is_handed_on(tree, _name(each))
    )


@remembered
def computes_names(file: SourceFile) -> bool:
    """Return whether a file reads any attribute whose name is no literal, whatever becomes of it."""
    read = file.tree if any(mentions(file.text, word) for word in _WORDS) else None
    return read is not None and bool(_computing(read.module))


def _computing(tree: ast.Module) -> list[ast.Call]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.Call) and _is_computed(each)]


def _is_computed(node: ast.Call) -> bool:
    name = _name(node)
    return name is not None and (not isinstance(name, ast.Constant) or _is_of_parts(name))


def _name(node: ast.Call) -> ast.expr | None:
    """Return the name of an attribute that a call reads, if it is a call that does."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = node.args[1:2] if function == "getattr" else node.args[:1]
    return given[0] if given and function in _WORDS else None


def _is_of_parts(node: ast.Constant) -> bool:
    """Tell whether a text may stand in several literals, one beside the other."""
    shortest = len(str(node.value)) + 2
    return node.lineno != node.end_lineno or (node.end_col_offset or 0) - node.col_offset > shortest + 1


def _template(node: ast.Call) -> ast.expr | None:
    return next((each for each in node.args if isinstance(each, ast.JoinedStr)), None)


def may_spell(given: ast.expr | None, name: str) -> bool:
    """Tell whether a name may be what an expression gives: all literal parts of a template are in it."""
    values = given.values if isinstance(given, ast.JoinedStr) else ()
    parts = [each.value for each in values if isinstance(each, ast.Constant)]
    return re.search(".*".join(re.escape(str(each)) for each in parts), name) is not None


COMPUTING = Topic("computing", lambda file, _key: _has_computed_names(file), is_about_others=True)
"""Which files read attributes whose names are no literals."""
