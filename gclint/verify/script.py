"""The text of the scripts that show failures: a step of training, and how each kind of failure is seen.

A script contains only what its failure needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import indent

from gclint.verify.worker.protocol import Failure
from gclint.verify.worker.scenarios import AGAIN, ENDLESS

TEMPLATE = '''\
"""{title}"""

{imports}

{guard}{constants}CONFIG = {config}


{helpers}def train(**checkpointing):
    """Return what a training step shows; with checkpointing if there are arguments for it."""
    transformers.set_seed(0)
    model = {name}({config_class}(**CONFIG)).train()
    for parameter in model.parameters():  # A zero would hide what is behind it.
        parameter.data += 0.01 * torch.randn_like(parameter)
{preparation}    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
{steps}    return {found}


{failures}print(f"transformers {{transformers.__version__}}, torch {{torch.__version__}}, {mode}")
{runs}except Exception as error:
    sentences = [f"training raises {{type(error).__name__}}: {{error}}"]
print(*sentences or ["the failure does not show"], sep="\\n")
sys.exit(1 if sentences else 0)
'''
FAILURES = """\
def failures(plain, found):
    \"\"\"Yield a sentence for each way in which the failure shows.\"\"\"
{shown}

"""
STEP = """\
{seed}({number})
loss = 0
{forward}{before}loss.backward()
{after}"""
FORWARD = """\
{inputs}{context}outputs = model(**inputs)
{noted}for seed, each in enumerate({outputs}):
    if torch.is_tensor(each):
        weights = torch.randn(each.shape, generator=torch.Generator().manual_seed(seed))
        loss += (each.nan_to_num(0, 0, 0) * weights).sum()
"""

_LOST = """\
had = [name for name, each in plain.items() if each is not None and each.any()]
lost = [name for name in had if found[name] is None or not found[name].any()]
if lost:
    yield f"{len(lost)} of {len(had)} parameters get no gradient: {', '.join(lost[:3])}"
"""
_LOST_AND_DIFFERENT = f"""\
{_LOST}\
other = [name for name in had if name not in lost and not close(plain[name], found[name])]
if other:
    yield f"{{len(other)}} of {{len(had)}} parameters get another gradient: {{', '.join(other[:3])}}"
more = [name for name in found if plain[name] is None and found[name] is not None and found[name].any()]
if more:
    yield f"{{len(more)}} parameters get a gradient only with checkpointing: {{', '.join(more[:3])}}"
"""
HELPERS = {
    "without_caches": '''\
def without_caches(outputs):
    """Return the outputs by name, except for caches."""
    named = outputs if isinstance(outputs, dict) else {"outputs": outputs}
    known = ("past_key_values", "cache_params", "mems", "state")
    return {name: value for name, value in named.items() if name not in known}
''',
    "tensors": '''\
def tensors(outputs):
    """Return the tensors among the outputs by name."""
    return {
        f"{name} {number}": each
        for name, value in without_caches(outputs).items()
        for number, each in enumerate(tree_leaves(value))
        if torch.is_tensor(each)
    }
''',
    "holders": '''\
def holders(model):
    """Return the modules and their configurations."""
    modules = list(model.modules())
    return modules + [module.config for module in modules if hasattr(module, "config")]
''',
    "lost_and_different": f'''\
def lost_and_different(plain, found):
    """Yield a sentence about the gradients that are lost, and one about those that differ."""
{indent(_LOST_AND_DIFFERENT, "    ")}''',
    "differences": '''\
def differences(plain, found):
    """Yield a sentence about the values that differ in two dictionaries."""
    both = plain.keys() & found.keys()
    names = [name for name in {**plain, **found} if name not in both or not same(plain[name], found[name])]
    if names:
        yield f"{len(names)} of {len(plain)} values are different: {', '.join(names[:3])}"
''',
    "same": '''\
def same(one, other):
    """Return whether two values are the same; tensors may be rounded."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if not torch.is_tensor(one) or not torch.is_tensor(other):
        return type(one) is type(other) and (one is other or one == other)
    if one.shape != other.shape or not one.is_floating_point() or not one.numel():
        return torch.equal(one, other)
    return close(one, other)
''',
    "close": '''\
def close(one, other):
    """Return whether two tensors are the same except for rounding."""
    largest = one.nan_to_num(0, 0, 0).abs().max().item()
    return torch.allclose(one, other, rtol=1e-3, atol=1e-5 * largest, equal_nan=True)
''',
    "state": '''\
def state(model):
    """Return the attributes of modules, except for those that enable checkpointing, and what is shared."""
    kept = {}
    for name, module in model.named_modules():
        for key in set(vars(module)) - set(vars(torch.nn.Module())):
            if "checkpointing" not in key and "require_grads_hook" not in key and key != "forward":
                kept[f"{name}.{key}"] = held(vars(module)[key])
    code = sys.modules[type(model).__module__]
    for owner in (code, *(each for each in vars(code).values() if isinstance(each, type))):
        for key, value in list(vars(owner).items()):
            if isinstance(value, (dict, list, set, deque)) and key[:2] != "__":
                kept[f"{owner.__name__}.{key}"] = held(value)
    return kept
''',
    "held": '''\
def held(value, depth=4):
    """Return what an attribute holds, with the items of containers and the attributes of objects."""
    if torch.is_tensor(value):
        return (value.detach().clone().nan_to_num(),)
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numpy.ndarray):
        inner = value.tolist()
    elif isinstance(value, (set, frozenset)):
        inner = [len(value)]
    elif isinstance(value, dict):
        inner = [part for pair in value.items() for part in pair]
    elif isinstance(value, (list, tuple, deque)):
        inner = list(value)
    else:
        inner = [] if callable(value) else list(getattr(value, "__dict__", {}).values())
    return (type(value).__name__, len(inner), *(held(each, depth - 1) for each in inner[:1000] if depth))
''',
    "content": '''\
def content(value, depth=5):
    """Return the tensors in a cache, each with the number of times that it was written to."""
    if torch.is_tensor(value):
        return [(value, value._version)]
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    else:
        inner = list(vars(value).values()) if re.search("Cache|Layer", type(value).__name__) else []
    return [each for part in inner if depth for each in content(part, depth - 1)]
''',
    "switches": '''\
def switches(model, value):
    """Return the names of the modules in which checkpointing is enabled, or those in which it is not."""
    modules = model.named_modules()
    return [name for name, each in modules if getattr(each, "gradient_checkpointing", None) is value]
''',
}
"""The functions of scripts by name, in their order; a script has those that it uses."""


@dataclass(frozen=True)
class Sign:
    """How a kind of failure is seen: pieces of the script, each of whole lines."""

    shown: str = _LOST_AND_DIFFERENT
    """Yields sentences about what was ``found`` with checkpointing, and what is ``plain``."""
    found: str = "{name: each.grad for name, each in model.named_parameters() if each.requires_grad}"
    """An expression of what a training step shows."""
    watch: str = ""
    """Runs before checkpointing is enabled."""
    context: str = ""
    """A context for each forward pass."""
    noted: str = ""
    """Runs after each forward pass, with ``outputs``."""
    before: str = ""
    """Runs before the backward pass."""
    after: str = ""
    """Runs after it."""
    all_steps: bool = False
    """Whether it takes all steps of the scenario, and not only the first."""


_DEFAULT = Sign()
_ENDLESS = Sign(
    watch="""\
runs, most = Counter(), Counter()


def count(name):
    runs[name] += 1
    if most and runs[name] > most[name]:
        raise RecursionError(f"{name} is recomputed without end")


for name, module in model.named_modules():
    module.register_forward_pre_hook(lambda *_, name=name: count(name))
""",
    before=f"most.update({{name: {ENDLESS + 1} * times for name, times in runs.items()}})\n",
)
_COUNTED = """\
runs = Counter()
for block in BLOCKS:
    for name, module in model.get_submodule(block).named_modules(prefix=block):
        module.register_forward_pre_hook(lambda *_, name=name: runs.update([name]))
"""
_OUTPUTS = Sign(
    """\
for expected, other in zip(plain, found):
    yield from differences(expected, other)
""",
    found="noted",
    watch="noted = []\n",
    noted="noted.append(tensors(outputs))\n",
)
_SIGNS = {
    "missing gradients": Sign(_LOST),
    "switches": Sign(
        """\
for name in found[0]:
    yield f"checkpointing is not enabled in {name or 'the model'}"
for name in found[1]:
    yield f"checkpointing is not disabled in {name or 'the model'}"
""",
        found="off, switches(model, True) if checkpointing else []",
        before="off = switches(model, False) if checkpointing else []\n",
        after="model.gradient_checkpointing_disable()\n",
    ),
    "recomputation": Sign(
        """\
for block in BLOCKS:
    if not any(found[name] > plain[name] for name in plain if f"{name}.".startswith(f"{block}.")):
        yield f"{block} is not recomputed in the backward pass"
""",
        found="runs",
        watch=_COUNTED,
    ),
    "double recomputation": Sign(
        """\
for block in BLOCKS:
    times = max(found[name] / plain[name] for name in plain if name.startswith(f"{block}."))
    if times > 2:
        yield f"{block} is recomputed {times - 1:g} times"
""",
        found="runs",
        watch=_COUNTED,
    ),
    "loss": replace(
        _OUTPUTS,
        shown="""\
for expected, other in zip(plain, found):
    yield from differences(*({k: v for k, v in run.items() if k[:5] == "loss "} for run in (expected, other)))
""",
    ),
    "outputs": _OUTPUTS,
    "saved bytes": Sign(
        """\
if found >= plain:
    yield f"{found:,} bytes are saved for the backward pass, and {plain:,} without checkpointing"
""",
        found="sum(storages.values())",
        watch="""\
storages = {}


def pack(tensor):
    storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    return tensor


""",
        context="with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):\n",
        before="""\
for parameter in model.parameters():
    storages.pop(parameter.untyped_storage().data_ptr(), None)
""",
    ),
    "buffers": Sign(
        "yield from differences(plain, found)\n", found="dict(model.named_buffers())", all_steps=True
    ),
    "second step": Sign(
        """\
for (gradients, outputs), (other_gradients, other_outputs) in list(zip(plain, found))[1:]:
    yield from lost_and_different(gradients, other_gradients)
    yield from differences(outputs, other_outputs)
""",
        found="noted",
        watch="noted = []\n",
        after=f"""\
gradients = {_DEFAULT.found}
noted.append((gradients, tensors(outputs)))
model.zero_grad()
""",
        all_steps=True,
    ),
    "state": Sign(
        "yield from differences(plain, found)\n",
        found="{key: each for key, each in state(model).items() if not same(each, before.get(key))}",
        watch="before = state(model)\n",
        all_steps=True,
    ),
    "cache": Sign(
        """\
for name in found:
    yield f"{name} is written to again in the backward pass"
""",
        found="rewritten",
        watch="""\
caches, rewritten = {}, set()


def look_for_caches(module, args, kwargs):
    caches.update({id(each): each for each in (*args, *kwargs.values()) if "Cache" in type(each).__name__})


for module in model.modules():
    module.register_forward_pre_hook(look_for_caches, with_kwargs=True)
""",
        before="written = [(each, content(each)) for each in caches.values()]\n",
        after="""\
for cache, before in written:
    if [(id(each), version) for each, version in content(cache)] != [(id(each), v) for each, v in before]:
        rewritten.add(type(cache).__name__)
""",
    ),
    "values": Sign(
        """\
yield from lost_and_different(plain[0], found[0])
for name, sums in found[2].items():
    before = torch.tensor(found[1][name])
    if any(not torch.isclose(torch.tensor(each), before, rtol=1e-4).any() for each in sums):
        yield f"the output of {name} is recomputed to other values"
""",
        found=f"({_DEFAULT.found}, *sums)",
        context="""\
with torch.autograd.graph.saved_tensors_hooks(*[lambda tensor: tensor] * 2):  # As offloading does.
""",
        watch="""\
sums = [{}]


def note(name, output):
    for each in tree_leaves(output):
        if torch.is_tensor(each) and each.is_floating_point():
            sums[-1].setdefault(name, []).append(float(each.double().sum()))


for name, module in model.named_modules():
    module.register_forward_hook(lambda _module, _args, output, name=name: note(name, output))
""",
        before="sums.append({})\n",
    ),
    "warning": Sign(
        """\
for each in dict.fromkeys(found):
    if "requires_grad=True" in each:
        yield f"torch warns: {each}"
""",
        found="caught",
        watch="""\
caught = []
warnings.simplefilter("always")
warnings.showwarning = lambda message, *_: caught.append(str(message))
""",
    ),
}
_GUARDS = {
    "time limit": "faulthandler.dump_traceback_later(60, exit=True)  # Shows where it hangs.\n",
    "memory limit": "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n",
}


def sign_of(failure: Failure) -> Sign:
    """Return how a failure is seen; a crash needs nothing."""
    if AGAIN in failure.message:
        return _ENDLESS
    return _SIGNS.get(failure.check, _DEFAULT)


def guard(failure: Failure) -> str:
    """Return the lines that protect the machine from what the model does."""
    return _GUARDS.get(failure.check, "")
