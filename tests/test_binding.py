"""Calls bound to signatures: always as Python itself binds them."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gclint.code.file import SourceFile
from gclint.code.walk import arguments
from gclint.network.binding import Binding, bind
from gclint.network.evaluation.signature import ParameterKind, Signature, function_signature, method_signature

_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: ParameterKind.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: ParameterKind.NORMAL,
    inspect.Parameter.VAR_POSITIONAL: ParameterKind.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY: ParameterKind.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD: ParameterKind.VAR_KEYWORD,
}
_NAMES = ("hidden_states", "layer_past", "mask", "use_cache", "a", "b")
_UNKNOWN_NAMES = ("other", "more")


@dataclass(frozen=True)
class _Header:
    """A generated signature, as code without ``self`` and as Python understands it."""

    code: str
    understood: inspect.Signature


@st.composite
def _headers(draw: st.DrawFn) -> _Header:
    names = draw(st.lists(st.sampled_from(_NAMES), unique=True))
    bounds = sorted(draw(st.tuples(*[st.integers(0, len(names))] * 3)))
    positional_only, normal, keyword_only = (
        names[: bounds[0]],
        names[bounds[0] : bounds[1]],
        names[bounds[1] : bounds[2]],
    )
    first_default = draw(st.integers(0, bounds[1]))
    parts: list[str] = []
    for index, name in enumerate(positional_only + normal):
        parts.append(_parameter(name, has_default=index >= first_default))
        if index == len(positional_only) - 1:
            parts.append("/")
    collects = draw(st.booleans())
    if collects or keyword_only:
        parts.append("*args" if collects else "*")
    parts += [_parameter(name, has_default=draw(st.booleans())) for name in keyword_only]
    if draw(st.booleans()):
        parts.append("**kwargs")
    code = ", ".join(parts)
    namespace: dict[str, object] = {}
    exec(f"def forward({code}\n): pass", namespace)
    return _Header(code, inspect.signature(namespace["forward"]))  # type: ignore[arg-type]


def _parameter(name: str, *, has_default: bool) -> str:
    return f"{name}: int = (1, 2)" if has_default else name


def _read(header: _Header) -> Signature:
    """Read the signature as a method's, which has ``self`` in front."""
    # `self` is positional-only itself where another parameter is.
    text = f"class Block:\n    def forward(self, {header.code}\n    ): pass\n"
    file = SourceFile(Path("block.py"), text.encode())
    method = file.outline.classes["Block"].method("forward")
    assert method is not None
    signature = method_signature(method)
    assert signature is not None
    return signature


@given(_headers())
@settings(deadline=None, max_examples=60, derandomize=True)
def test_signature_is_read_as_python_reads_it(header: _Header) -> None:
    read = _read(header)
    understood = list(header.understood.parameters.values())
    assert [(each.name, each.kind) for each in read.parameters] == [
        (each.name, _KINDS[each.kind]) for each in understood
    ]
    assert [each.default is None for each in read.parameters] == [
        each.default is inspect.Parameter.empty for each in understood
    ]
    assert [each.annotation is None for each in read.parameters] == [
        each.annotation is inspect.Parameter.empty for each in understood
    ]


@dataclass(frozen=True)
class _Call:
    """Arguments: how many by position, and the names of the others, each argument's value its index."""

    positional: int
    keywords: tuple[str, ...]

    @property
    def code(self) -> str:
        parts = [str(index) for index in range(self.positional)]
        parts += [f"{name}={self.positional + index}" for index, name in enumerate(self.keywords)]
        return f"f({', '.join(parts)})"

    def receivers(self, signature: inspect.Signature) -> list[str | None] | None:
        """Return the names of the parameters that Python gives each argument to; None if it refuses.

        Nobody writes a call that lacks an argument, so no parameter is required here.
        """
        namespace: dict[str, Any] = {}
        exec(f"def f{_without_requirements(signature)}: return locals()", namespace)
        try:
            # Called, not bound by `inspect`: before Python 3.13 that gets some positional-only names wrong.
            received = eval(self.code, namespace)
        except TypeError:
            return None
        by_value = {value: name for name, value in received.items() if isinstance(value, int)}
        return [by_value.get(value) for value in range(self.positional + len(self.keywords))]


def _without_requirements(signature: inspect.Signature) -> inspect.Signature:
    return signature.replace(
        parameters=[
            each
            if each.name in ("args", "kwargs")
            else each.replace(default=None, annotation=inspect.Parameter.empty)
            for each in signature.parameters.values()
        ]
    )


_calls = st.builds(
    _Call,
    st.integers(0, len(_NAMES) + 1),
    st.lists(st.sampled_from(_NAMES + _UNKNOWN_NAMES), unique=True, max_size=4).map(tuple),
)


def _bind(code: str, signature: Signature) -> Binding:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    return bind(arguments(call), signature)


def _receivers(binding: Binding) -> list[str | None]:
    assert [bound.index for bound in binding.arguments] == list(range(len(binding.arguments)))
    return [None if bound.parameter is None else bound.parameter.name for bound in binding.arguments]


@given(_headers(), _calls)
@settings(deadline=None, max_examples=400, derandomize=True)
def test_call_is_bound_as_python_binds_it(header: _Header, call: _Call) -> None:
    binding = _bind(call.code, _read(header))
    expected = call.receivers(header.understood)
    assert binding.complete == (expected is not None)
    if expected is not None:
        assert _receivers(binding) == expected
        for name in (*_NAMES, *_UNKNOWN_NAMES, "args", "kwargs"):
            bound = binding.argument(name)
            assert (bound and bound.index) == (expected.index(name) if name in expected else None)
    assert [bound.by_position for bound in binding.arguments] == [True] * call.positional + [False] * len(
        call.keywords
    )
    assert not binding.unpacks_list
    assert not binding.unpacks_mapping


@given(_headers(), _calls, st.integers(0, 4))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_unpacked_mapping_changes_nothing_for_other_arguments(
    header: _Header, call: _Call, place: int
) -> None:
    signature = _read(header)
    plain = _bind(call.code, signature)
    keywords = [f"{name}={index}" for index, name in enumerate(call.keywords)]
    place = min(place, len(keywords))
    parts = (
        [str(index) for index in range(call.positional)] + keywords[:place] + ["**more"] + keywords[place:]
    )
    binding = _bind(f"f({', '.join(parts)})", signature)
    assert binding.unpacks_mapping
    assert binding.complete == plain.complete
    receivers = _receivers(binding)
    assert receivers.pop(call.positional + place) is None
    assert receivers == _receivers(plain)


@given(_headers(), st.integers(0, 3), st.integers(0, 3))
@example(_Header("", inspect.Signature()), 0, 0)
@settings(deadline=None, max_examples=30, derandomize=True)
def test_unpacked_list_hides_who_receives_what(header: _Header, before: int, behind: int) -> None:
    parts = ["0"] * before + ["*rest"] + ["1"] * behind
    binding = _bind(f"f({', '.join(parts)})", _read(header))
    assert binding.unpacks_list
    assert not binding.complete


@given(_headers())
@settings(deadline=None, max_examples=60, derandomize=True)
def test_only_functions_with_ordinary_parameters_are_read_from_their_node(header: _Header) -> None:
    file = SourceFile(Path("block.py"), f"def forward({header.code}\n): pass\n".encode())
    signature = function_signature(file, file.outline.functions["forward"].function)
    parameters = header.understood.parameters.values()
    if any(each.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD for each in parameters):
        assert signature is None
    else:
        assert signature is not None
        assert [each.name for each in signature.positional] == list(header.understood.parameters)
