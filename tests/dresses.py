"""Other ways to write the same code that Python takes: what is found in it, and the repair, are the same.

Unlike the variants of the harness, these change more than the layout of lines. So a repaired file is not
compared with a text but, as a syntax tree, with the dressed text of what the fixture expects.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Mapping

_HEADER = r"(?m)^( *(?:async )?(?:class|def) \w+)"
_FLAG = r"(?m)^( *)supports_gradient_checkpointing = (True|False)$"
_STACK = r"(?m)^( *)self\.(\w+) = (nn\.Module(?:List|Dict)\(.*\))$"


def _sub(pattern: str, new: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text)


def _imported(statement: str, new: str, *, own: bool = False) -> Callable[[str], str]:
    """Import torch's layers by another statement; those that hold blocks under names of their own."""

    def dress(text: str) -> str:
        if "\nfrom torch import nn\n" not in text or "\nimport torch\n" in text:
            return text
        text = text.replace("\nfrom torch import nn\n", f"\n{statement}\n")
        if own:
            text = re.sub(r"(?<![\w.])nn\.(Module(?:List|Dict)?)\b", r"\1", text)
        return re.sub(r"(?<![\w.])nn\.(\w+)", new, text)

    return dress


def _classes_in_branches(text: str) -> str:
    """Put all classes behind the imports into ``if`` statements of their own."""
    lines: list[str] = []
    inside = in_string = False
    for line in text.split("\n"):
        begins = line.startswith(("class ", "@")) and not in_string
        if begins and not inside:
            lines.append("if __name__:")
            inside = True
        elif line and not line.startswith((" ", "class ", "@")) and not in_string:
            inside = False
        lines.append(f"    {line}" if inside and line and not in_string else line)
        in_string ^= line.count('"""') % 2 == 1
    dressed = "\n".join(lines)
    try:
        ast.parse(dressed)
    except SyntaxError:
        return text  # what stands between the classes ends them
    return dressed


_NEWER = (
    {"type parameters": _sub(rf"{_HEADER}(?=\()", r"\1[T: (int, str), *Ts]")}
    if sys.version_info >= (3, 12)
    else {}
)
DRESSES: Mapping[str, Callable[[str], str]] = {
    "lone CRs": lambda text: text.replace("\n", "\r"),
    "form feeds": _sub(r"(?m)^(?=class |def |@)", "\f"),
    **_NEWER,
    "comments in headers": _sub(
        r"(?m)^( *class \w+)\((.*)\):", r"\1(  # the ) bases:\n    \2,\n    # (\n):"
    ),
    "joined headers": _sub(r"(?m)^( *)(class|def) (\w+)\(", r"\1\2 \\\n  \3 \\\n("),
    "metaclass": _sub(r"(?m)^(class \w+\(.*)\):", r"\1, metaclass=type):"),
    "decorated classes": _sub(
        r"(?m)^class ", "@(lambda _, key: lambda each: each)(') class B(nn.Module):', key=[1])\nclass "
    ),
    "bracketed bases": _sub(r"(?m)^(class \w+)\(([\w.]+)", r"\1((\2)"),
    "flag in brackets": _sub(_FLAG, r"\1supports_gradient_checkpointing = (\2)"),
    "flag behind a semicolon": _sub(_FLAG, r"\1_other = 1; supports_gradient_checkpointing = \2; _third = 3"),
    "flag in a tuple": _sub(_FLAG, r"\1_other, supports_gradient_checkpointing = [], \2"),
    "flag in brackets of a tuple": _sub(_FLAG, r"\1(supports_gradient_checkpointing, _other) = (\2, [])"),
    "flag with annotation": _sub(_FLAG, r"\1supports_gradient_checkpointing: 'dict[str, bool]' = \2"),
    "flag in a chain": _sub(_FLAG, r"\1_other = supports_gradient_checkpointing = _third = \2"),
    "flag joined": _sub(_FLAG, r"\1supports_gradient_checkpointing \\\n    = \\\n    \2"),
    "flag without spaces": _sub(_FLAG, r"\1supports_gradient_checkpointing=\2  # as it is"),
    "flag in a branch": _sub(_FLAG, r"\1if True:\n\1    supports_gradient_checkpointing = \2"),
    "another flag in a string": _sub(
        _FLAG, r"\1supports_gradient_checkpointing = \2" + '\n    """\n    supports_gradient_checkpointing = 1"""'  # noqa: E501
    ),
    "stack in a tuple": _sub(_STACK, r"\1self.\2, self.other_norm = \3, nn.LayerNorm(8)"),
    "stack in a tuple, last": _sub(_STACK, r"\1(self.other_norm, self.\2) = (nn.LayerNorm(8), \3)"),
    "stack with annotation": _sub(_STACK, r"\1self.\2: 'nn.ModuleList' = \3"),
    "stack in a chain": _sub(_STACK, r"\1self.\2 = self.other_name = \3"),
    "stack in brackets": _sub(_STACK, r"\1self.\2 = (\3)"),
    "stack joined": _sub(_STACK, r"\1self.\2 \\\n        = \\\n        \3"),
    "stack behind a semicolon": _sub(_STACK, r"\1other = 1; self.\2 = \3"),
    "stack by walrus": _sub(_STACK, r"\1self.\2 = (made := \3)"),
    "spaced calls": _sub(r"\bnn\.(Module\w+)\(", r"nn . \1 ("),
    "calls over lines": _sub(r"\bnn\.Module(List|Dict)\(", r"nn.Module\1 \\\n  ("),
    "spaced attributes": _sub(r"\bself\.(?=\w)", "self . "),
    "attributes over lines": _sub(r"\bself\.(?=\w)", "self \\\n    ."),
    "conditions in brackets": _sub(r"(?m)^( *)if (.*):$", r"\1if (\2):"),
    "conditions joined": _sub(r"(?m)^( *if self\.gradient_checkpointing) and ", r"\1 \\\n    and \\\n    "),
    "conditions over lines": _sub(
        r"(?m)^( *)if (self\.gradient_checkpointing) and (.*):$", r"\1if (  # which?\n\2\n   and \3\n):"
    ),
    "loops over brackets": _sub(r"\bfor (.*) in (self\.\w+):", r"for (\1) in (\2):"),
    "loops by walrus": _sub(r"\bfor (.*) in (self\.\w+):", r"for \1 in (stack := \2):"),
    "classes in branches": _classes_in_branches,
    "type comments": _sub(r"(?m)^( *\w+ = .*[\w)\]])$", r"\1  # type: ignore[assignment]"),
    "statements joined": _sub(r"(?m)^( *super\(\)\.__init__\(.*\))\n *(?=self\.\w+ = .*[\w)]$)", r"\1; "),
    "module by another name": _imported("from torch import nn as N", r"N.\1"),
    "module in full": _imported("import torch", r"torch.nn.\1"),
    "names of their own": _imported(
        "from torch import nn\nfrom torch.nn import Module, ModuleDict, ModuleList", r"nn.\1", own=True
    ),
    "loop variable by another name": _sub(r"\b(layer|block)\b(?!=)", "each_one"),
    "attribute by another name": _sub(r"(?<=\.)(?:layers|blocks|layer)\b", "the_others"),
    "comments in between": _sub(r"(?m)^( +)(?=for |if |hidden_states)", r"\1# nn.ModuleList( [\n\1"),
    "self by another name": _sub(r"\bself\b", "this"),
}  # fmt: skip
