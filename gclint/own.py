"""Rules of the user's own: the modules that hold them are loaded, and held to what a rule has to be.

They are files, named by their paths, installed modules, and entry points.

Nothing is loaded because a repository says so. No folder is added to the search path of Python. What is
imported by its name is looked for only where it is installed: folders of the search path that lie in the
working directory, in what is checked, or in the repositories around them are left out meanwhile.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_args

from gclint.cache.codec import decoded, encoded
from gclint.cache.consulted import Damaged
from gclint.code.paths import shortened
from gclint.facts import digest, read_bytes
from gclint.finding import Applicability, Edit, Finding, StoryStep, is_own_code
from gclint.level import Level
from gclint.network.model import Network
from gclint.rule import (
    Precision,
    Rule,
    Setting,
    all_rules,
    home,
    is_own,
    own_rules,
    rule_classes,
    set_own_rules,
)
from gclint.settings.definitions import is_path_of_rules
from gclint.settings.settings import working_directory

GROUP = "gclint.rules"
"""The group of entry points that name modules with rules."""
_DIGITS = 16
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_Made = TypeVar("_Made")
_named: tuple[tuple[str, ...], tuple[Path, ...]] = ((), ())
"""What is loaded: the names, and the paths that they are not looked for in."""


class UnusableRules(Exception):
    """Rules cannot be loaded; the message says which, where and why."""


class Unsound(Exception):
    """A rule found something that is not a finding of its own; the message is a clause."""


def load_rules(names: Sequence[str], around: Iterable[Path]) -> None:
    """Load the modules with these names; their rules are then among all rules, and no others of the user's.

    Modules and entry points are not looked for in the working directory, nor in the paths ``around``, nor in
    the repositories that these lie in.

    Raises:
        UnusableRules: a module cannot be loaded, or one of its rules cannot be used.
    """
    global _named
    set_own_rules(())
    _named = (), ()
    if not names:
        return
    places = tuple(around)
    roots = [root for each in (working_directory(), *places) for root in _roots(each)]
    modules: dict[ModuleType, str] = {}
    with _search_path_without(roots):
        for name in names:
            module = _at_path(name) if is_path_of_rules(name) else _installed(name, roots)
            modules.setdefault(module, name)
    for module, name in modules.items():
        set_own_rules((*own_rules(), *_rules_in(module, name)))
    _named = tuple(names), places


def rule_files() -> tuple[tuple[str, str], ...]:
    """Return which files the rules of the user's own are in, and digests of their contents."""
    return tuple((file, _digest(file)) for file in sorted(set(map(home, own_rules()))))


def _digest(file: str) -> str:
    try:
        return digest(read_bytes(file))
    except OSError:  # It is in an archive; the cache keeps nothing that was imported from there.
        return ""


def sent(make: Callable[[], _Made]) -> tuple[Callable[..., _Made], tuple[Any, ...]]:
    """Return what ``__reduce__`` has to return: another process loads the rules before it makes anything."""
    return _received, (*_named, pickle.dumps(make))


def _received(names: Sequence[str], around: Sequence[Path], make: bytes) -> Any:
    load_rules(names, around)
    return pickle.loads(make)()


# -- modules


class _AsRead(SourceFileLoader):
    """Runs the content of a file as it was read: no compiled form of it is believed, or written."""

    def __init__(self, name: str, path: str, content: bytes) -> None:
        super().__init__(name, path)
        self._content = content

    def get_code(self, fullname: str) -> Any:
        """Return the compiled content."""
        return self.source_to_code(self._content, self.path)


def _at_path(path: str) -> ModuleType:
    real = os.path.realpath(path)
    try:
        content = read_bytes(real)
    except FileNotFoundError:
        raise UnusableRules(f"there is no file {shortened(path)}") from None
    except OSError as error:
        raise UnusableRules(f"{shortened(path)} cannot be read: {error.strerror or error}") from None
    # Another content is another module: an editor's session goes on while a rule is written.
    name = f"gclint_own_{digest(os.fsencode(real) + content)[:_DIGITS]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, real, loader=_AsRead(name, real, content))
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        with _explained(real):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _installed(name: str, roots: Sequence[Path]) -> ModuleType:
    """Return the module that the entry point of this name leads to; if there is none, that of this name."""
    from importlib.metadata import entry_points  # Importing it takes longer than all else here.

    targets = {each.value for each in entry_points(group=GROUP) if each.name == name}
    if len(targets) > 1:
        raise UnusableRules(f"several entry points are called {name}: {', '.join(sorted(targets))}")
    target = targets.pop() if targets else name
    parts = target.split(".")
    if not all(map(str.isidentifier, parts)):
        what = f"the entry point {name} leads to {target!r}, which" if target != name else repr(target)
        raise UnusableRules(f"{what} is not the name of a module, and a path ends in .py")
    module = None
    for number in range(len(parts)):
        module = _imported(".".join(parts[: number + 1]), roots)
    assert module is not None
    return module


def _imported(name: str, roots: Sequence[Path]) -> ModuleType:
    """Return a module whose packages have been imported, if it does not lie in one of the roots."""
    with _explained(name):
        try:
            spec = find_spec(name)
        except ValueError:  # It has been imported in some way that leaves no trace, such as `__main__`.
            spec = None
        if spec is None:
            where = f"the environment of {sys.executable}; a file is named by its path"
            raise UnusableRules(f"there is no module or entry point {name} in {where}")
        if spec.has_location and spec.origin is not None and _is_in(spec.origin, roots):
            file = shortened(spec.origin)
            raise UnusableRules(f"the module {name} is {file}, part of what is checked; name it by its path")
        return importlib.import_module(name)


@contextmanager
def _explained(named: str) -> Iterator[None]:
    """Turn whatever goes wrong while foreign code runs into one line."""
    try:
        yield
    except UnusableRules:
        raise
    except (Exception, SystemExit) as error:
        raise UnusableRules(f"{_place(error, named)}: {_reason(error, named)}") from None


def _place(error: BaseException, named: str) -> str:
    """Return where an error has its cause: in the file that is named, if it has anything to do with it."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{shortened(error.filename)}:{error.lineno}:{error.offset or 1}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).is_absolute()]
    frames = [each for each in frames if each.filename not in (__file__, importlib.__file__)]
    own = [each for each in frames if each.filename == named] or frames
    if not own:
        return shortened(named) if Path(named).is_absolute() else named
    # Python 3.10 knows no columns.
    column = getattr(own[-1], "colno", None)
    place = f"{shortened(own[-1].filename)}:{own[-1].lineno}"
    return place if column is None else f"{place}:{column + 1}"


def _reason(error: BaseException, named: str) -> str:
    lines = [error.msg] if isinstance(error, SyntaxError) else str(error).splitlines()
    reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name is not None and Path(named).is_absolute():
        beside = Path(named).with_name(error.name.partition(".")[0])
        if beside.is_dir() or beside.with_suffix(".py").is_file():
            return f"{reason}; a file that is named by its path cannot import its neighbours, so install them"
    return reason


# -- rules


def _rules_in(module: ModuleType, name: str) -> Iterator[Rule]:
    file = getattr(module, "__file__", None) or module.__name__
    classes = list(rule_classes(module))
    complete = [each for each in classes if not inspect.isabstract(each)]
    if not complete:
        lacking = "".join(f"; {each.__name__} has no method `check`" for each in classes)
        raise UnusableRules(f"{shortened(name)} has no rule: a subclass of gclint.rule.Rule{lacking}")
    others: list[Rule] = []
    for each in complete:
        with _explained(file):
            rule = each()
            why = next(_complaints(rule, (*all_rules(), *others)), None)
        if why is not None:
            raise UnusableRules(f"{shortened(home(rule))}{_row(each)}: {each.__name__}: {why}")
        others.append(rule)
        yield rule


def _row(rule: type[Rule]) -> str:
    try:
        return f":{inspect.getsourcelines(rule)[1]}:1"
    except (OSError, TypeError):  # There is no source.
        return ""


def _complaints(rule: Rule, known: tuple[Rule, ...]) -> Iterator[str]:
    code, name = getattr(rule, "code", None), getattr(rule, "name", None)
    if not isinstance(code, str) or not is_own_code(code):
        had = "it has no code" if code is None else f"its code is {code!r}"
        yield f"{had}; write two or more capital letters and three digits, such as ACM001, but not GC or ALL"
        return
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        had = "it has no name" if name is None else f"its name is {name!r}"
        yield f"{had}; write words in lower case, joined by hyphens, such as literal-use-cache"
        return
    for other in known:
        if code in other.codes or name == other.name:
            word = code if code in other.codes else name
            yield f"{word} is already that of {other.code} {other.name}, in {home(other)}"
    if not rule.documentation():
        yield "it has no docstring, which is its documentation"
    if not isinstance(rule.formerly, tuple) or not all(map(is_own_code, rule.formerly)):
        yield "formerly has to be a tuple of codes"
    if not isinstance(rule.level, Level):
        yield f"level has to be one of {', '.join(map(str, Level))}"
    if rule.precision not in get_args(Precision):
        yield f"precision has to be one of {', '.join(get_args(Precision))}"
    if not isinstance(rule.fixes, tuple) or not all(isinstance(each, Applicability) for each in rule.fixes):
        yield f"fixes has to be a tuple of {', '.join(map(str, Applicability))}"
    yield from _complaints_about_settings(rule, known)


def _complaints_about_settings(rule: Rule, known: tuple[Rule, ...]) -> Iterator[str]:
    if not isinstance(rule.settings, tuple) or not all(isinstance(each, Setting) for each in rule.settings):
        yield "settings has to be a tuple of gclint.rule.Setting"
        return
    taken = {each.name: other for other in known for each in other.settings}
    for each in rule.settings:
        if each.name in taken:
            yield f"its setting {each.name} is already one of {taken[each.name].code}"


# -- what they find


def found_by(rule: Rule, network: Network) -> list[Finding]:
    """Return what a rule finds in a file.

    Raises:
        Unsound: it is a rule of the user's own, and what it yields cannot be reported.
    """
    if not is_own(rule):
        return list(rule.check(network))
    found = rule.check(network)
    if not isinstance(found, Iterable):
        raise Unsound(f"`check` returns {found!r} where it has to yield findings")
    return [_checked(each, rule, network) for each in found]


def _checked(found: object, rule: Rule, network: Network) -> Finding:
    """Return a finding if it is one of a rule: of the right types, about itself, and inside of the text."""
    if not isinstance(found, Finding):
        raise Unsound(f"`check` yields {type(found).__name__}, which is not a Finding")
    try:
        is_typed = decoded(Finding, encoded(found)) == found
    except (TypeError, Damaged):
        is_typed = False
    if not is_typed:
        raise Unsound("a field of a finding does not have the type that gclint.finding says")
    if (found.code, found.name) != (rule.code, rule.name):
        raise Unsound(f"a finding has the code {found.code} and the name {found.name}; use `self.finding`")
    if not found.message or not found.symbol:
        raise Unsound("a finding needs a message and a symbol")
    if found.path != network.file.path or found.start == found.end:
        raise Unsound("a finding is not about code in the file that is checked, `network.file.path`")
    parts: tuple[Finding | Edit | StoryStep, ...] = (found, *found.edits, *found.story)
    for path, start, end in ((each.path, each.start, each.end) for each in parts):
        length = len(network.project.file(path).text)
        if not 0 <= start <= end <= length:
            raise Unsound(f"[{start}, {end}) is not a part of {path.name}, which has {length} characters")
    return found


# -- where modules are looked for


def _roots(path: Path) -> Iterator[Path]:
    """Yield the outermost repositories that a path lies in and leads to; where there is none, the folder."""
    real, beside = Path(os.path.realpath(path)), Path(os.path.realpath(path.absolute().parent))
    is_folder = real.is_dir()
    for folder, is_root in ((real if is_folder else real.parent, True), (beside, not is_folder)):
        repositories = [each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")]
        if repositories:
            yield repositories[-1]
        elif is_root:
            yield folder


@contextmanager
def _search_path_without(roots: Sequence[Path]) -> Iterator[None]:
    before = [*sys.path]
    sys.path[:] = [each for each in before if not _is_in(each, roots)]
    try:
        yield
    finally:
        sys.path[:] = before


def _is_in(path: str, roots: Sequence[Path]) -> bool:
    """Return whether a path is in one of the roots, and not in this Python, which may lie there as well."""
    import site
    import sysconfig

    real = Path(os.path.realpath(path))
    own = {*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values()}
    if any(real.is_relative_to(os.path.realpath(each)) for each in own):
        return False
    return any(map(real.is_relative_to, roots))
