"""Settings of trainers in YAML, as the tree of a script that would train with the same ones.

Such a file is then read like all other code: nodes of the tree stand where the keys and values stand in the
file. Only keys at the top level count, which is where axolotl, LLaMA-Factory and TRL document them.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import Any, TypeAlias, TypedDict

from gclint.code.tree import position_of
from gclint.finding import Position

_ENDINGS = (".yaml", ".yml")
_FIND = "find_unused_parameters"
"""Without this word, a file has no settings that a rule looks at, and need not be parsed."""
_MOST = 200_000
"""A file with more characters is data: settings have a hundred lines."""
_MOST_BRACKETS = 2_000
"""PyYAML looks at all open brackets again for each token."""
_OTHERWISE = frozenset(
    (
        *("fsdp", "kt", "mca", "megatron", "offload", "offloading", "parallel", "plugins", "ray", "rl"),
        *("selective", "unsloth"),
    )
)
"""Words in keys by which a trainer wraps, checkpoints or trains otherwise than transformers does."""
_OFF = (None, False, 0, 1)
_TRUE = ("on", "true", "yes")
_ENABLED = "gradient_checkpointing"
_OPTIONS = "gradient_checkpointing_kwargs"
_USE_REENTRANT = "use_reentrant"
_STAGES = ("pt", "sft", "rm", "dpo", "kto")
"""The stages of LLaMA-Factory in which it trains with a trainer of transformers or TRL."""
_TAG = "tag:yaml.org,2002:"
_COMMENT = re.compile(r"#[^\r\n]*")


_Literal: TypeAlias = str | bool | int | EllipsisType | None


class UnreadableSettings(Exception):
    """A text is not YAML, or cannot be read as such; the message is meant for the user."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True)
class _KeyAndValue:
    """A node of YAML for a key, and one for its value."""

    key: Any
    value: Any

    @cached_property
    def literal(self) -> _Literal:
        """The value, if it is one of those that say how a model is trained; ``...`` for anything else."""
        return _literal(self.value)


_Settings: TypeAlias = Mapping[str, _KeyAndValue]


class _NodePlace(TypedDict):
    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


def are_settings(path: Path) -> bool:
    """Return whether a file has YAML in it, going by its name."""
    return path.suffix.lower() in _ENDINGS


def settings_module(text: str, starts: Sequence[int]) -> ast.Module:
    """Return the tree of a script that trains with the settings in a text; an empty one if there are none.

    Lines of the text begin at ``starts``.

    Raises:
        UnreadableSettings: it is not YAML, or PyYAML is not installed.
    """
    settings = _settings(text, starts) if _FIND in text and len(text) <= _MOST else {}
    if not settings or any(_trains_otherwise(name, each) for name, each in settings.items()):
        return ast.Module([], [])
    writer = _Writer(text, starts)
    is_factory = "stage" in settings and "finetuning_type" in settings
    arguments = _of_llama_factory(settings, writer) if is_factory else _as_written(settings, writer)
    return writer.script(settings, arguments)


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each comment in YAML begins and ends, up to where a text is none, or is data."""
    try:
        import yaml
    except ImportError:
        return
    if len(text) > _MOST:
        return
    seen = depth = 0
    try:
        for token in yaml.scan(text, yaml.SafeLoader):
            for comment in _COMMENT.finditer(text, seen, max(token.start_mark.index, seen)):
                yield comment.span()
            seen = token.end_mark.index
            depth += isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken))
            if depth > _MOST_BRACKETS:
                return
    except (yaml.YAMLError, ValueError, OverflowError):
        return


def _settings(text: str, starts: Sequence[int]) -> _Settings:
    """Return the settings at the top level of a text, by their keys; of several with one key, the last."""
    try:
        import yaml
    except ImportError:
        raise UnreadableSettings("gclint reads YAML with PyYAML: pip install 'gclint[yaml]'") from None
    try:
        top = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = None if mark is None else position_of(starts, mark.index)
        raise UnreadableSettings(f"this is not valid YAML: {error.problem}", position) from None
    except yaml.reader.ReaderError as error:
        position = position_of(starts, error.position)
        raise UnreadableSettings(f"this is not valid YAML: {error.reason}", position) from None
    except RecursionError:
        raise UnreadableSettings("this YAML is nested too deeply to be read") from None
    except (ValueError, OverflowError) as error:  # An escape is no character, or a version no number.
        raise UnreadableSettings(f"this is not valid YAML: {error}") from None
    pairs = top.value if isinstance(top, yaml.MappingNode) else ()
    if any(_kind(key) == "merge" for key, _ in pairs):
        return {}  # What is merged in may be merged itself, and grow without end.
    return {key.value: _KeyAndValue(key, value) for key, value in pairs if _kind(key) == "str"}


def _trains_otherwise(name: str, setting: _KeyAndValue) -> bool:
    is_on = setting.literal is True or setting.literal not in _OFF
    return is_on and not _OTHERWISE.isdisjoint(name.split("_"))


def _kind(node: Any) -> str:
    """Return the kind of a scalar; nothing for anything else, whatever its tag says."""
    return str(node.tag).removeprefix(_TAG) if isinstance(node.value, str) else ""


def _literal(node: Any) -> _Literal:
    kind = _kind(node)
    if kind == "null" or not node.value:  # Nothing is the same as what is empty.
        return None
    if kind not in ("bool", "int", "str"):
        return ...
    text = str(node.value)
    if kind == "int":
        return int(text) if text in ("0", "1") else ...
    return text.lower() in _TRUE if kind == "bool" else text


class _Writer:
    """Writes nodes of Python where nodes of YAML stand in a text."""

    def __init__(self, text: str, starts: Sequence[int]) -> None:
        self._text = text
        self._starts = starts

    def script(self, settings: _Settings, arguments: list[ast.keyword]) -> ast.Module:
        """Return the tree of a script that trains with arguments, in place of all settings."""
        nowhere = self._span(len(self._text), len(self._text))
        library = ast.Name("transformers", ast.Load(), **nowhere)
        made = ast.Call(ast.Attribute(library, "TrainingArguments", ast.Load()), [], arguments)
        trainer = ast.Call(ast.Attribute(library, "Trainer", ast.Load()), [], [ast.keyword("args", made)])
        train = ast.Call(ast.Attribute(trainer, "train", ast.Load()), [], [])
        nodes = [*settings.values()]
        statement = ast.Expr(train, **self._place(nodes[0].key, nodes[-1]))
        body = [ast.Import([ast.alias("transformers", **nowhere)], **nowhere), statement]
        return ast.fix_missing_locations(ast.Module(body, []))

    def argument(self, name: str, setting: _KeyAndValue, value: ast.expr | None = None) -> ast.keyword:
        """Return the argument for a setting, with its own value or another one."""
        value = value or self.constant(setting)
        return ast.keyword(name, value, **self._place(setting.key, setting))

    def constant(self, setting: _KeyAndValue) -> ast.Constant:
        """Return the value of a setting, if it is a literal; ``...`` stands for all others."""
        start, end = setting.value.start_mark.index, setting.value.end_mark.index
        return ast.Constant(setting.literal, **self._span(start, end))

    def options(self, setting: _KeyAndValue) -> ast.expr:
        """Return the options of checkpointing, which are a mapping with nothing but literals in it."""
        import yaml

        pairs = setting.value.value if isinstance(setting.value, yaml.MappingNode) else None
        if pairs is None or any(_kind(key) != "str" for key, _ in pairs):
            return ast.Constant(...)
        keys = [ast.Constant(key.value) for key, _ in pairs]
        return ast.Dict([*keys], [self.constant(_KeyAndValue(key, value)) for key, value in pairs])

    def _place(self, first: Any, last: _KeyAndValue) -> _NodePlace:
        """Return the place from a key to the end of a setting; what an alias stands for is elsewhere."""
        end = max(last.key.end_mark.index, last.value.end_mark.index)
        return self._span(first.start_mark.index, end)

    def _span(self, start: int, end: int) -> _NodePlace:
        (row, column), (end_row, end_column) = self._row(start), self._row(end)
        return {"lineno": row, "col_offset": column, "end_lineno": end_row, "end_col_offset": end_column}

    def _row(self, offset: int) -> tuple[int, int]:
        """Return the row of an offset, and its column in bytes, as Python counts."""
        row = bisect_right(self._starts, offset)
        return row, len(self._text[self._starts[row - 1] : offset].encode("utf-8", "surrogatepass"))


def _as_written(settings: _Settings, writer: _Writer) -> list[ast.keyword]:
    """Return the arguments of axolotl and TRL, whose keys are the names that transformers has for them."""
    arguments = [
        writer.argument(name, each, writer.options(each) if name == _OPTIONS else None)
        for name, each in settings.items()
        if name.isidentifier()
    ]
    # Without options, each trainer takes other ones.
    return arguments if _OPTIONS in settings else [*arguments, _unknown_options()]


def _unknown_options() -> ast.keyword:
    return ast.keyword(_OPTIONS, ast.Constant(...))


def _of_llama_factory(settings: _Settings, writer: _Writer) -> list[ast.keyword]:
    """Return the arguments of LLaMA-Factory, which checkpoints unless told otherwise, and reentrantly."""
    said = {name: each.literal for name, each in settings.items()}
    named = [writer.argument(name, each) for name, each in settings.items() if name.isidentifier()]
    if (
        said["stage"] not in _STAGES
        or said.get("do_train") is not True
        or said.get("disable_gradient_checkpointing", False) is not False
        or said.get(_ENABLED, False) is not False
    ):
        return [*(each for each in named if each.arg != _OPTIONS), _unknown_options()]
    own = settings.get("use_reentrant_gc")
    reentrant = ast.Constant(True) if own is None else writer.constant(own)
    options = ast.Dict([ast.Constant(_USE_REENTRANT)], [reentrant])
    others = [each for each in named if each.arg not in (_ENABLED, _OPTIONS)]
    return [*others, ast.keyword(_ENABLED, ast.Constant(True)), ast.keyword(_OPTIONS, options)]
