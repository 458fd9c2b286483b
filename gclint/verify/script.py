"""The text of the scripts that show failures: the steps, and how each kind of failure is recognised."""

from __future__ import annotations

from gclint.verify.worker.protocol import Failure

TEMPLATE = '''\
"""{title}"""

{imports}

{guard}CONFIG = {config}
BLOCKS = {blocks}
CACHES = ("past_key_values", "cache_params", "mems")


def holders(model):
    """Return the modules and their configurations."""
    modules = list(model.modules())
    return modules + [module.config for module in modules if hasattr(module, "config")]


def prepare(model):
{preparation}    return model


def batch(model, number):
    batches = [{batches}]
    inputs = batches[number % len(batches)]  # Two lengths alternate.
{batch}    return inputs


def seed(number):
    torch.manual_seed(number)
    numpy.random.seed(number)
    random.seed(number)


def state(model):
    """Return the attributes of modules, except for those that enable checkpointing."""
    kept = {{}}
    for name, module in model.named_modules():
        for key in set(vars(module)) - set(vars(torch.nn.Module())):
            value = vars(module)[key]
            if "checkpointing" in key or "require_grads_hook" in key or key == "forward":
                continue
            kept[f"{{name}}.{{key}}"] = held(value)
    return kept


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
        inner = [] if callable(value) else list(getattr(value, "__dict__", {{}}).values())
    return (type(value).__name__, len(inner), *(held(each, depth - 1) for each in inner[:1000] if depth))


def content(value, depth=5):
    """Return the tensors in a cache."""
    if torch.is_tensor(value):
        return [value]
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    else:
        inner = list(vars(value).values()) if re.search("Cache|Layer", type(value).__name__) else []
    return [each for part in inner if depth for each in content(part, depth - 1)]


class Training:
    """A few training steps and their results; with checkpointing if it has arguments."""

    def __init__(self, **checkpointing):
        seed(0)
        model = {name}({config_class}.from_dict(CONFIG)).train()
        for parameter in model.parameters():  # A zero would hide what is behind it.
            if parameter.is_floating_point():
                parameter.data += 0.01 * torch.randn_like(parameter)
        if any(getattr(each, "gradient_checkpointing", False) for each in model.modules()):
            model.gradient_checkpointing_disable()  # It is enabled by default.
        self.model = prepare(model)
        self.checkpointing = checkpointing
        self.error, self.stage = None, "the construction"
        self.gradients, self.outputs, self.saved = [], [], []
        self.runs, self.sums = (Counter(), Counter()), ({{}}, {{}})
        self.is_backward = False
        self.caches, self.rewritten = {{}}, set()
        self.off = self.on = ()
        before = state(model)
        names = {{module: name for name, module in model.named_modules()}}

        def count(module, args, kwargs):
            runs = self.runs[self.is_backward]
            runs[names[module]] += 1
            if self.is_backward and runs[names[module]] > {endless} * max(self.runs[0][names[module]], 1):
                raise RecursionError(f"{{names[module]}} is recomputed without end")
            for each in () if self.is_backward else (*args, *kwargs.values()):
                if "Cache" in type(each).__name__:
                    self.caches[id(each)] = each

        def note(module, args, output):
            sums = self.sums[self.is_backward].setdefault(names[module], [])
            for each in tree_leaves(output):
                if torch.is_tensor(each) and each.is_floating_point():
                    sums.append(float(each.double().sum()))

        for module in names:
            module.register_forward_pre_hook(count, with_kwargs=True)
            module.register_forward_hook(note)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.train()
            except (Exception, SystemExit) as error:
                self.error = error
        self.warnings = [str(each.message) for each in caught]
        self.values = {{**dict(model.named_parameters()), **dict(model.named_buffers())}}
        after = state(model)
        changed = [key for key in after if key not in before or not same(after[key], before[key])]
        self.state = {{key: after[key] for key in changed}}

    def train(self):
        if self.checkpointing:
            self.stage = "enabling checkpointing"
            self.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=self.checkpointing)
            self.off = self.switches(False)
        if HOOK and not hasattr(self.model, "_require_grads_hook"):  # As when training adapters.
            self.stage = "enable_input_require_grads()"
            self.model.enable_input_require_grads()
        for number in range({steps}):
            seed(number)
            self.step(number)
        if self.checkpointing:
            self.model.gradient_checkpointing_disable()
            self.on = self.switches(True)

    def switches(self, value):
        modules = self.model.named_modules()
        return [name for name, each in modules if getattr(each, "gradient_checkpointing", None) is value]

    def step(self, number):
        storages, outputs = {{}}, {{}}

        def pack(tensor):
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        self.stage, self.is_backward = "the forward pass", False
        for index in range({forwards}):
            inputs = batch(self.model, number * {forwards} + index)
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                found = self.model(**inputs)
            for name, value in (found if isinstance(found, dict) else {{"outputs": found}}).items():
                for i, each in enumerate(tree_leaves(value) if name not in CACHES else ()):
                    if torch.is_tensor(each):
                        outputs[f"{{name}} {{i}} of batch {{index}}"] = each
        self.outputs.append(outputs)
        for parameter in self.model.parameters():
            storages.pop(parameter.untyped_storage().data_ptr(), None)
        self.saved.append(sum(storages.values()))
        written = {{
            key: [(each, each._version) for each in content(cache)] for key, cache in self.caches.items()
        }}
        losses = []
        for index, each in enumerate(each for each in outputs.values() if each.requires_grad):
            weights = torch.randn(each.shape, generator=torch.Generator().manual_seed(index))
            losses.append((each.nan_to_num(0, 0, 0) * weights).sum())
        self.stage, self.is_backward = "the backward pass", True
        if losses:
            sum(losses).backward()
        for key, before in written.items():
            after = [(id(each), each._version) for each in content(self.caches[key])]
            if after != [(id(each), version) for each, version in before]:
                self.rewritten.add(type(self.caches[key]).__name__)
        named = self.model.named_parameters()
        self.gradients.append({{name: each.grad for name, each in named if each.requires_grad}})
        self.model.zero_grad()


def same(one, other):
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if not torch.is_tensor(one) or not torch.is_tensor(other):
        return type(one) is type(other) and (one is other or one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    scale = max(one.nan_to_num(0, 0, 0).abs().amax().item() if one.numel() else 0.0, 1e-12)
    return torch.allclose(one, other, rtol=1e-3, atol=1e-5 * scale, equal_nan=True)


def differences(one, other):
    """Yield the keys whose values differ in two dictionaries."""
    for name in {{**one, **other}}:
        if name not in one or name not in other or not same(one[name], other[name]):
            yield name


def gradients(step):
    """Yield a line for each gradient of a step that is lost or different."""
    for name, gradient in plain.gradients[step].items():
        found = checkpointed.gradients[step][name]
        if gradient is None or not gradient.any():
            continue
        if found is None or not found.any():
            yield f"lost {{name}}"
        elif not same(gradient, found):
            yield f"different {{name}}"


def failure():
    """Yield a line for each way in which the failure shows."""
{shown}

MODE = {mode}
HOOK = {hook}
LEAST = 0.5  # The least probability of dropping something, in scenarios with dropout.
plain = Training()
if MODE and plain.error is not None:
    LEAST = 0.0  # The model may be written for its defaults.
    plain = Training()
if MODE and HOOK and plain.error is not None:
    HOOK = False  # The model cannot be trained with it even without checkpointing.
    plain = Training()
checkpointed = Training(**MODE) if MODE else plain
if MODE and plain.error is not None:
    sys.exit(f"{{plain.stage}} raises without checkpointing: {{plain.error!r}}")
lines = list(failure())
for line in lines or ["the failure does not show"]:
    print(line)
if lines:
    sys.exit(1)
'''

_ERROR = """\
    if checkpointed.error is not None:
        yield f"{checkpointed.stage} raises {type(checkpointed.error).__name__}: {checkpointed.error}"
"""
_FIRST_STEP = """\
    yield from gradients(0) if checkpointed.gradients else ()
"""
_SHOWN = {
    "error": _ERROR + _FIRST_STEP,
    "frozen base": _ERROR + _FIRST_STEP,
    "switches": """\
    yield from (f"not enabled in {name or 'the model'}" for name in checkpointed.off)
    yield from (f"not disabled in {name or 'the model'}" for name in checkpointed.on)
""",
    "recomputation": """\
    for block in BLOCKS:
        if not any(name.startswith(f"{block}.") for name in checkpointed.runs[True]):
            yield f"not recomputed {block}"
""",
    "missing gradients": _FIRST_STEP,
    "gradients": _FIRST_STEP,
    "loss": """\
    for name in differences(plain.outputs[0], checkpointed.outputs[0]):
        if name.startswith("loss "):
            found, expected = checkpointed.outputs[0].get(name), plain.outputs[0].get(name)
            yield f"different {name}: {found}, and {expected} without checkpointing"
""",
    "outputs": """\
    yield from (f"different {name}" for name in differences(plain.outputs[0], checkpointed.outputs[0]))
""",
    "saved bytes": """\
    if checkpointed.saved[0] >= plain.saved[0]:
        yield f"nothing saved: {checkpointed.saved[0]:,} bytes, and {plain.saved[0]:,} without"
""",
    "double recomputation": """\
    for block in BLOCKS:
        inside = [name for name in plain.runs[False] if name.startswith(f"{block}.")]
        times = max(checkpointed.runs[True][name] / plain.runs[False][name] for name in inside)
        if times > 1:
            yield f"recomputed {times:g} times {block}"
""",
    "buffers": """\
    yield from (f"different {name}" for name in differences(plain.values, checkpointed.values))
""",
    "second step": """\
    for step in () if list(gradients(0)) else range(1, len(checkpointed.gradients)):
        yield from gradients(step)
        for name in differences(plain.outputs[step], checkpointed.outputs[step]):
            yield f"different {name}"
""",
    "state": """\
    yield from (f"different {name}" for name in differences(plain.state, checkpointed.state))
""",
    "cache": """\
    yield from (f"written again {name}" for name in checkpointed.rewritten)
""",
    "values": """\
    for name, sums in checkpointed.sums[True].items():
        before = torch.tensor(checkpointed.sums[False][name])
        if any(not torch.isclose(torch.tensor(each), before, rtol=1e-4).any() for each in sums):
            yield f"recomputed to other values: the output of {name}"
    yield from gradients(0) if checkpointed.gradients else ()
""",
    "warning": """\
    yield from (f"torch warns: {each}" for each in checkpointed.warnings if "requires_grad=True" in each)
""",
}
_GUARDS = {
    "time limit": "faulthandler.dump_traceback_later(60, exit=True)  # Shows where it hangs.\n",
    "memory limit": "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\n",
}


def shown(failure: Failure) -> str:
    """Return the body of the function that yields the signs of a failure; a crash needs none."""
    return _SHOWN.get(failure.check, _ERROR)


def guard(failure: Failure) -> str:
    """Return the lines that protect the machine from what the model does."""
    return _GUARDS.get(failure.check, "")
