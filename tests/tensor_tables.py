"""What torch's operations change and share, from ATen's own schemas: ``python3 -m tests.tensor_tables``.

Prints the text of ``gclint/model/tensors.py``, or writes it with ``--write``. Whatever a schema does not say
is found out by calls: each operation is called with many arguments, and memory and versions are compared.
"""

from __future__ import annotations

import inspect
import random
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import click

from tests.environment import PROJECT

TABLES = PROJECT / "gclint" / "model" / "tensors.py"

_WIDTH = 110
_ATTEMPTS = 10
"""How often each overload is called with tensors of each kind."""

_BY_DEFAULT = frozenset(["device", "inplace", "layout", "memory_format", "out", "pin_memory"])
"""Parameters that are given nothing else: what they change is known, or a wrong value ends the process."""

_PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}
"""How the schemas of a module's functions are called."""


def _words(reasons: Mapping[str, str]) -> frozenset[str]:
    """Return all words of a table that has a reason for each few of them."""
    return frozenset(word for words in reasons.values() for word in words.split())


_NOT_TRIED = _words({"trusts the offsets it is given, and reads anywhere": "embedding_bag"})
"""Operations that end the process on wrong arguments."""

_LEFT_OUT = _words(
    {
        "belongs to autograd, or is set as well as read": "data grad is_leaf output_nr retains_grad set_data",
        "has a binding that does something else": "resize resize_as",
        "maps a file": "from_file",
        "reads what was never written": "empty_quantized",
        "are for tracing": "is_vulkan_available sym_constrain_range sym_constrain_range_for_size",
    }
)
"""Operations that stay unknown, although there is a schema."""

_VENDORS = (
    "_",
    "cudnn_",
    "fbgemm_",
    "miopen_",
    "mkldnn_",
    "quantize_",
    "quantized_",
    "q_",
    "batch_norm_back",
)
"""How names begin that no model calls; they stay unknown."""

_CHANGING = _words(
    {
        "call a function for each value": "apply_ map_ map2_",
        "moves the values to memory that processes share": "share_memory_",
    }
)
"""What changes an argument, although no schema says so."""

_STATISTICS = frozenset(("running_mean", "running_var"))
"""Changed in training mode by each operation that takes them, although the schemas do not say so."""

_SHARING = _words(
    {
        "take a tensor or an array as it is": "as_tensor asarray from_dlpack from_numpy frombuffer",
        "return a tensor itself that is of this type or on this device": """
            bfloat16 bool byte cdouble cfloat chalf char cpu cuda double float half int ipu long mtia short
            type xpu
        """,
        "are attributes, or change the class only": "H T as_subclass",
        "is an array over the same memory": "numpy",
        "return the argument in evaluation mode": "dropout1d dropout2d dropout3d native_dropout",
        "keep the tensors given as parts of the sparse one": """
            sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
            sparse_csr_tensor
        """,
        "return a tensor itself that has this layout": """
            to_dense to_mkldnn to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr
        """,
        "are a reshape for one group or a factor of 1, where a device has no kernel of its own": """
            channel_shuffle native_channel_shuffle pixel_shuffle pixel_unshuffle
        """,
        "return the argument or a view where there is no padding, or one tensor only": """
            chain_matmul nested_to_padded_tensor to_padded_tensor
        """,
        "returns the edges of bins that it is given": "histogramdd",
        "return what is real, or not quantised, itself": "conj_physical dequantize",
        "are views by another name, concealed from autograd": """
            unsafe_chunk unsafe_split unsafe_split_with_sizes
        """,
    }
)
"""What may share memory with an argument, although no schema says so; calls find more."""

_FRESH = _words(
    {
        "are Python over operations": """
            lobpcg lu new_tensor pca_lowrank svd_lowrank tensor unique unravel_index
        """,
        "are gone, and raise": "eig lstsq matrix_rank solve symeig",
        "are about sizes, types and devices": """
            Size broadcast_shapes device finfo iinfo is_storage is_tensor
        """,
        "only read settings": """
            get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device
            get_default_dtype is_autocast_cpu_enabled is_autocast_enabled is_grad_enabled
            is_inference_mode_enabled
        """,
        "are older names of sparse products": "dsmm hsmm saddmm spmm",
    }
)
"""Functions without a schema that change nothing, and whose results share memory with nothing."""

_WITHOUT_GRADIENT = _words(
    {
        "are of another type": "bool byte char int long numpy short tolist",
        "are cut off": "data detach detach_",
        "are about shapes and types": "dim numel",
        "make a new tensor": """
            arange empty eye from_numpy full linspace logspace new_empty new_full new_ones new_tensor
            new_zeros ones rand randint randint_like randn randperm tensor tril_indices triu_indices zeros
        """,
        "compares all at once": "equal",
        "take integers": """
            bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd
            lcm one_hot
        """,
        "counts": "unique unique_consecutive",
    }
)
"""Operations without a schema, or with options, whose results require no grad."""

_READING = _words(
    {
        "reviewed by hand": """
            dense_dim device dim dim_order dtype element_size equal get_device
            is_coalesced is_complex is_conj is_contiguous is_cpu is_cuda is_distributed is_floating_point
            is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_nonzero is_pinned is_quantized
            is_same_size is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu item
            itemsize layout nbytes ndim ndimension nelement numel shape size sparse_dim storage_offset
            stride tolist
        """
    }
)
"""Attributes and methods of tensors that only read, and make no tensor."""

_NOT_FUNCTIONAL = _words(
    {
        "change running statistics in training mode": "batch_norm instance_norm",
        "calls a function that it is given": "triplet_margin_with_distance_loss",
        "are helpers of torch": """
            assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function
            has_torch_function_unary has_torch_function_variadic
        """,
        "need hardware to be tried": "grouped_mm scaled_grouped_mm scaled_mm",
    }
)
"""Names in ``torch.nn.functional`` that are no functions of a model, or do more than return a result."""

_NOT_READ = frozenset(
    ("args", "extra_repr", "forward", "from_pretrained", "kwargs", "reset_parameters", "self")
)
"""What no method of a module reads that makes a result."""
_NOT_MODULES = _words(
    {
        "contain what the user gives, or call it": """
            Container DataParallel Module ModuleDict ModuleList ParameterDict ParameterList Sequential
            Transformer TransformerDecoder TransformerEncoder TripletMarginWithDistanceLoss
        """,
        "have no forward of their own": "RNNBase RNNCellBase",
        "change running statistics in training mode": """
            BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d SyncBatchNorm
        """,
    }
)
"""Classes of ``torch.nn`` that stay unknown, beside the lazy ones."""


@dataclass(frozen=True)
class Tables:
    """The names of each set."""

    fresh: frozenset[str]
    views: frozenset[str]
    changing: frozenset[str]
    methods_only_read: frozenset[str]
    no_methods: frozenset[str]
    modules: frozenset[str]
    names_of_modules: frozenset[str]
    functional: frozenset[str]
    undifferentiable: frozenset[str]
    with_indices: frozenset[str]


@dataclass(frozen=True)
class Seen:
    """What calls of an operation have shown."""

    calls: int
    shares: bool
    changes: bool


@cache
def tables() -> Tables:
    """Return all sets, as this torch has them."""
    import torch

    fresh, views, changing = set(_FRESH), set(_SHARING), set(_CHANGING)
    python = _functional() - _SHARING
    for name, schemas in _operations().items():
        if name in _LEFT_OUT or name.startswith(_VENDORS) or not _are_known(name):
            continue
        if any(map(_is_changing, schemas)):
            changing.add(name)
        elif name in _SHARING or any(map(_is_view, schemas)):
            views.add(name)
        else:
            seen = observed(name)
            (changing if seen.changes else views if seen.shares else fresh).add(name)
    for name in python - fresh - views - changing:
        seen = observed(name)
        assert not seen.changes, f"{name} changes an argument"
        if seen.shares:
            views.add(name)
    return Tables(
        fresh=frozenset(fresh),
        views=frozenset(views),
        changing=frozenset(changing),
        methods_only_read=_READING - views,
        no_methods=frozenset(name for name in fresh | views | changing if not hasattr(torch.Tensor, name)),
        modules=_modules(),
        names_of_modules=_names_of_modules(),
        functional=_functional() - changing,
        undifferentiable=_WITHOUT_GRADIENT | frozenset(filter(_gives_no_gradient, fresh)),
        with_indices=frozenset(filter(_gives_indices, fresh)),
    )


def _spaces() -> Mapping[str, Any]:
    import torch

    functional = torch.nn.functional
    own = {each: getattr(torch, each) for each in _PREFIXES}
    return {"torch": torch, "Tensor": torch.Tensor, "functional": functional, **own}


@cache
def _operations() -> Mapping[str, Sequence[Any]]:
    """Return the schemas of operations with a binding, by the last part of the binding's name.

    Those of ``prims`` speak only where there is none of ``aten``: they call views changes.
    """
    import torch

    # The others are TorchScript's methods of lists, dictionaries and strings.
    dispatched = set(torch._C._dispatch_get_all_op_names())
    found = defaultdict(list)
    for schema in sorted(torch._C._jit_get_all_schemas(), key=str):
        namespace, _, name = schema.name.partition("::")
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        if namespace not in ("aten", "prims") or full not in dispatched:
            continue
        for space, holder in _spaces().items():
            bound = name.removeprefix(_PREFIXES.get(space, ""))
            if (space not in _PREFIXES or bound != name) and _is_bound(holder, bound):
                found[bound].append(schema)
    return {
        name: [each for each in schemas if each.name.startswith("aten::")] or schemas
        for name, schemas in found.items()
    }


def _is_bound(holder: Any, name: str) -> bool:
    """Tell whether something has an attribute of this name that is no module, such as ``torch.random``."""
    return hasattr(holder, name) and not inspect.ismodule(getattr(holder, name))


def _are_known(name: str) -> bool:
    """Tell whether each function of a name is one that a schema or a table here speaks of."""
    schemas = {schema.name.partition("::")[2] for schema in _operations()[name]}
    tabled = name in _FRESH | _SHARING | _CHANGING
    return tabled or all(
        {name, prefix + name} & schemas or (space == "functional" and name in _functional())
        for space, holder in _spaces().items()
        if callable(getattr(holder, name, None))
        for prefix in (_PREFIXES.get(space, ""),)
    )


def _is_changing(schema: Any) -> bool:
    """Tell whether an overload changes an argument that is not there for its result."""
    if any(each.name in _STATISTICS for each in schema.arguments):
        return True
    return any(
        each.alias_info is not None and each.alias_info.is_write and not each.is_out
        for each in schema.arguments
    )


def _is_view(schema: Any) -> bool:
    """Tell whether a result of an overload may share memory with an argument, as its schema has it."""
    if any(each.is_out for each in schema.arguments):
        return False
    return any(each.alias_info is not None for each in schema.returns)


def observed(name: str) -> Seen:
    """Call all functions of a name in many ways, and return what has been seen."""
    calls, shares, changes = 0, False, False
    for function, arguments in _trials(name):
        tensors = list(_tensors([*arguments[0], *arguments[1].values()]))
        versions = [each._version for each in tensors]
        try:
            result = function(*arguments[0], **arguments[1])
        except Exception:  # These arguments are not for it.
            continue
        calls += 1
        memory = {_memory(each) for each in tensors} - {0}
        shares |= any(_memory(each) in memory for each in _tensors([result]))
        changes |= versions != [each._version for each in tensors]
    return Seen(calls, shares, changes)


def _gives_no_gradient(name: str) -> bool:
    """Tell whether no result of any call requires grad, although some argument does."""
    found = [any(each.requires_grad for each in results) for results in _computed(name)]
    return bool(found) and not any(found)


def _gives_indices(name: str) -> bool:
    """Tell whether of two results the first one may require grad, and the second one never does."""
    found = {tuple(each.requires_grad for each in results) for results in _computed(name)}
    return (True, False) in found and all(len(each) <= 2 and each[1:] != (True,) for each in found)


@cache
def _computed(name: str) -> Sequence[Sequence[Any]]:
    """Return the tensors that calls have given of which some argument requires grad."""
    found = []
    for function, arguments in _trials(name):
        given = [*arguments[0], *arguments[1].values()]
        for each in _tensors(given):
            each.requires_grad_(each.is_floating_point() or each.is_complex())
        if not any(each.requires_grad for each in _tensors(given)):
            continue
        # These arguments may not be for it.
        with suppress(Exception):
            found.append(list(_tensors([function(*arguments[0], **arguments[1])])))
    return [each for each in found if each]


Arguments = tuple[list[Any], dict[str, Any]]


def _trials(name: str) -> Iterator[tuple[Callable[..., Any], Arguments]]:
    import torch

    if name in _NOT_TRIED:
        return
    warnings.simplefilter("ignore")
    draw = random.Random(name)
    bound = [getattr(holder, name) for holder in _spaces().values() if callable(getattr(holder, name, None))]
    for schema in _operations().get(name, ()):
        types = [str(each.type) for each in schema.arguments]
        if schema.name.startswith("prims::") or not any("Tensor" in each for each in types):
            continue
        if any(each.is_out for each in schema.arguments):
            continue
        packet = getattr(torch.ops.aten, schema.name.partition("::")[2])
        functions = [getattr(packet, schema.overload_name or "default"), *bound]
        wanted = [
            (each.name, str(each.type), each.has_default_value(), each.default_value, each.kwarg_only)
            for each in schema.arguments
        ]
        for arguments in _drawn(draw, wanted):
            yield from ((function, arguments) for function in functions)
    function = getattr(torch.nn.functional, name, None)
    if inspect.isfunction(function):
        wanted = [
            (each.name, str(each.annotation), each.default is not each.empty, each.default, False)
            for each in inspect.signature(function).parameters.values()
        ]
        yield from ((function, arguments) for arguments in _drawn(draw, wanted))


def _drawn(draw: random.Random, wanted: Sequence[tuple[str, str, bool, Any, bool]]) -> Iterator[Arguments]:
    import torch

    shapes = [(), (1,), (3,), (3, 3), (1, 3), (2, 3, 3), (1, 1, 3, 3), (1, 4, 2, 2), (1, 1, 2, 2, 2)]
    kinds = [(shape, torch.float32) for shape in shapes]
    kinds += [
        (shape, kind) for shape in [(3,), (3, 3)] for kind in (torch.int64, torch.complex64, torch.bool)
    ]
    for shape, kind in kinds:
        for _ in range(_ATTEMPTS):
            positional: list[Any] = []
            keywords: dict[str, Any] = {}
            for name, type_, is_optional, default, by_keyword in wanted:
                is_used = is_optional and (name in _BY_DEFAULT or draw.random() < 0.5)
                value = default if is_used else _value(draw, name, type_, shape, kind)
                if by_keyword and not is_used:
                    keywords[name] = value
                elif not by_keyword:
                    positional.append(value)
            yield positional, keywords


def _value(draw: random.Random, name: str, type_: str, shape: tuple[int, ...], kind: Any) -> Any:
    """Return something that may be meant by a parameter's name and type."""
    import torch

    if "Tensor" in type_:
        is_index = name in ("index", "indices", "target", "offsets", "repeats") and draw.random() < 0.8
        made = torch.zeros(shape, dtype=torch.int64) if is_index else torch.ones(shape).to(kind)
        if name in ("mask", "condition") and draw.random() < 0.8:
            made = made.bool()
        if "Optional" in type_ and draw.random() < 0.3:
            return None
        is_list = "List" in type_ or "Sequence" in type_
        return [made] * draw.choice((1, 1, 2)) if is_list else made
    if name == "dtype":
        return draw.choice((torch.float32, torch.float64))
    if name == "mode" and "int" in type_:
        return draw.choice((0, 1, 2))
    if "bool" in type_:
        return draw.random() < 0.5
    if "List" in type_ or "Tuple" in type_:
        return draw.choice(([], [0], [1], [0, 1], [1, 1], [0, 0], [-1], [1] * len(shape), list(shape)))
    if "float" in type_ or "number" in type_:
        return draw.choice((0.0, 0.5, 1.0))
    if "int" in type_:
        return draw.choice((0, 1, 2, -1, 3))
    if "str" in type_:
        return draw.choice(("none", "mean", "constant", "reflect", "ij", "i->i", "ij->ij", "..."))
    return None


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _memory(tensor: Any) -> int:
    """Return where a tensor's values lie; 0 if it has none, or keeps them in tensors of its own."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):
        return 0


@cache
def _functional() -> frozenset[str]:
    import torch

    functional = torch.nn.functional
    return frozenset(
        name
        for name in dir(functional)
        if inspect.isroutine(getattr(functional, name))
        and not name.startswith("_")
        and not name.endswith("_")
        if name[0].islower() and name not in _NOT_FUNCTIONAL
    )


def _modules() -> frozenset[str]:
    import torch

    return frozenset(
        name
        for name, kind in vars(torch.nn).items()
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module)
        if name not in _NOT_MODULES and not name.startswith("Lazy")
    )


def _names_of_modules() -> frozenset[str]:
    import torch

    found: set[str] = set()
    for module in _modules():
        for kind in getattr(torch.nn, module).__mro__:
            if kind not in (torch.nn.Module, object) and kind.__module__.startswith("torch."):
                found.update(
                    vars(kind), getattr(kind, "__constants__", ()), getattr(kind, "__annotations__", ())
                )
                found.update(inspect.signature(kind.__init__).parameters)
    return frozenset(name for name in found - _NOT_READ if not name.startswith("_"))


_HEAD = '''\
"""What operations on tensors change and share, and which modules and functions keep no state.

Written by ``python3 -m tests.tensor_tables --write`` from the schemas of torch {version}, and from calls
where these say too little. Names are the last parts: ``matmul`` stands for ``torch.matmul`` and
``torch.Tensor.matmul``, and ``norm`` for ``torch.linalg.norm`` too. What is in no set is unknown.
"""

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())

'''

_DOCSTRINGS = {
    "fresh": "Operations that change nothing, and whose results share memory with no argument; `out=` apart.",
    "views": "Operations and attributes that change nothing, and may return memory of an argument.",
    "changing": "Operations that change an argument in some overload, or may do so in training mode.",
    "methods_only_read": "Attributes and methods of tensors that only read, and return no tensor.",
    "no_methods": "Operations of the sets above that are no methods or attributes of tensors.",
    "modules": """\
Classes of `torch.nn` whose `forward` keeps no state and changes nothing but its result.

`inplace=` apart, and `max_norm=` of embeddings, which changes the weight. Results may share memory with an
argument, as those of `Dropout`, `Flatten` and `Identity` do.
""",
    "names_of_modules": "Attributes, methods and settings of these classes, which their methods may read.",
    "undifferentiable": (
        "Operations whose results never require grad, unless a new tensor is asked for that does."
    ),
    "with_indices": "Operations that may give two tensors, of which only the first may require grad.",
    "functional": """\
Functions of `torch.nn.functional` that change nothing without `inplace=` and `out=`.

With `max_norm=`, `embedding` and `embedding_bag` change the weight: who asks has to look for it. A function
that is in `VIEWS` too may return memory of an argument; the others do not.
""",
}


def text() -> str:
    """Return the text of the module."""
    import torch

    parts = [_HEAD.format(version=torch.__version__.partition("+")[0])]
    for name, docstring in _DOCSTRINGS.items():
        words = " ".join(sorted(getattr(tables(), name)))
        lines = textwrap.fill(words, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        parts.append(f'{name.upper()}: Final = _names("""\n{lines}\n""")\n"""{docstring}"""\n')
    return "\n".join(parts)


@click.command(help=__doc__)
@click.option("--write", is_flag=True, help="Write the module instead of printing it.")
def main(write: bool) -> None:
    """Print the module's text, or write it."""
    if write:
        TABLES.write_text(text(), encoding="utf-8")
    else:
        click.echo(text(), nl=False)


if __name__ == "__main__":
    main()
