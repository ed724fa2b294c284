"""What a program may change between two steps of an optimizer: options, parameters, state. The next
step must be that of what there is now, whatever was prepared before.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from oracle import both

KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda t, ps: t.optim.SGD(ps, lr=0.1),
    "momentum": lambda t, ps: t.optim.SGD(ps, lr=0.1, momentum=0.9),
    "Adam": lambda t, ps: t.optim.Adam(ps, lr=0.1),
    "amsgrad": lambda t, ps: t.optim.Adam(ps, lr=0.1, amsgrad=True),
    "RMSprop": lambda t, ps: t.optim.RMSprop(ps, lr=0.1, momentum=0.5, centered=True),
    "Adagrad": lambda t, ps: t.optim.Adagrad(ps, lr=0.1),
    "Adadelta": lambda t, ps: t.optim.Adadelta(ps, lr=0.1),
    "Adamax": lambda t, ps: t.optim.Adamax(ps, lr=0.1),
    "NAdam": lambda t, ps: t.optim.NAdam(ps, lr=0.1),
    "RAdam": lambda t, ps: t.optim.RAdam(ps, lr=0.1),
    "ASGD": lambda t, ps: t.optim.ASGD(ps, lr=0.1),
    "Rprop": lambda t, ps: t.optim.Rprop(ps, lr=0.1),
    "AdamW": lambda t, ps: t.optim.AdamW(ps, lr=0.1, weight_decay=0.3),
}


def set_gradients(t: Any, params: list[Any], step: int) -> None:
    """The third parameter has its first gradient in the second step, the fourth never one."""
    for k, p in enumerate(params):
        if p.grad is None and (k < 2 or step > 0) and k != 3:
            p.grad = t.zeros_like(p)
        if p.grad is not None:
            p.grad.copy_(t.full_like(p, 1.0 + 0.5 * k - 0.3 * step))


def sets(**options: Any) -> Callable[[Any, Any, Any], None]:
    def edit(t: Any, optimizer: Any, params: Any) -> None:
        optimizer.param_groups[0].update(options)

    return edit


def in_state(change: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Any, Any, Any], None]:
    """Changes each parameter's own state, where there is any."""

    def edit(t: Any, optimizer: Any, params: Any) -> None:
        for own in list(optimizer.state.values()):
            change(t, own)

    return edit


def equal_tensors(*names: str) -> Callable[[Any, Any, Any], None]:
    def change(t: Any, own: dict[str, Any]) -> None:
        own.update({name: own[name].clone() for name in names or list(own)})

    return in_state(change)


def rate_as_equal_tensor(t: Any, optimizer: Any, params: Any) -> None:
    """Equal as float32: not the same number."""
    optimizer.param_groups[0]["lr"] = t.tensor(0.1)


def rate_as_tensor(t: Any, optimizer: Any, params: Any) -> None:
    optimizer.param_groups[0]["lr"] = t.tensor(0.1, dtype=t.float64)
    optimizer.step()
    optimizer.param_groups[0]["lr"].fill_(0.7)


def betas_as_list(t: Any, optimizer: Any, params: Any) -> None:
    betas = optimizer.param_groups[0]["betas"] = [0.5, 0.6]
    optimizer.step()
    betas[0] = 0.7


def betas_as_tensors(t: Any, optimizer: Any, params: Any) -> None:
    betas = t.tensor(0.5, dtype=t.float64), t.tensor(0.75, dtype=t.float64)
    optimizer.param_groups[0]["betas"] = betas
    optimizer.step()
    betas[0].fill_(0.25)


def another_parameter(t: Any, optimizer: Any, params: Any) -> None:
    """Of equal value, with the state of the one it replaces."""
    old = params[1]
    params[1] = optimizer.param_groups[0]["params"][1] = old.detach().clone().requires_grad_()
    if old in optimizer.state:
        optimizer.state[params[1]] = optimizer.state.pop(old)


def new_states(t: Any, optimizer: Any, params: Any) -> None:
    for p, own in list(optimizer.state.items()):
        optimizer.state[p] = {name: copy.deepcopy(value) for name, value in own.items()}


def forget_states(t: Any, optimizer: Any, params: Any) -> None:
    optimizer.state.clear()


def forget_one_state(t: Any, optimizer: Any, params: Any) -> None:
    optimizer.state.pop(params[1], None)


def other_mapping(t: Any, optimizer: Any, params: Any) -> None:
    optimizer.state = type(optimizer.state)(dict)


def fewer_parameters(t: Any, optimizer: Any, params: Any) -> None:
    del optimizer.param_groups[0]["params"][0]


def other_order(t: Any, optimizer: Any, params: Any) -> None:
    optimizer.param_groups[0]["params"].reverse()


def more_parameters(t: Any, optimizer: Any, params: Any) -> None:
    params.append(t.ones(1, dtype=t.float64, requires_grad=True))
    optimizer.param_groups[0]["params"].append(params[-1])


def another_group(t: Any, optimizer: Any, params: Any) -> None:
    params.append(t.ones(1, dtype=t.float64, requires_grad=True))
    optimizer.add_param_group({"params": [params[-1]], "lr": 0.5})


def copied_group(t: Any, optimizer: Any, params: Any) -> None:
    optimizer.param_groups[0] = {**optimizer.param_groups[0], "lr": 0.3}


def no_gradient(t: Any, optimizer: Any, params: Any) -> None:
    params[0].grad = None
    optimizer.step()
    optimizer.zero_grad()
    optimizer.step()


def other_data(t: Any, optimizer: Any, params: Any) -> None:
    params[0].data = t.zeros_like(params[0])


def reload(t: Any, optimizer: Any, params: Any) -> None:
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.step()
    optimizer.load_state_dict(saved)


def in_a_hook(t: Any, optimizer: Any, params: Any) -> None:
    def halve(optimizer: Any, args: Any, kwargs: Any) -> None:
        optimizer.param_groups[0]["lr"] /= 2

    optimizer.register_step_pre_hook(halve)
    optimizer.register_step_post_hook(halve)


EDITS: dict[str, Callable[[Any, Any, Any], None]] = {
    "nothing": lambda t, optimizer, params: None,
    "rate": sets(lr=0.5),
    "rate as int": sets(lr=1),
    "decay": sets(weight_decay=0.2),
    "maximize": sets(maximize=True),
    "tensors of equal value": equal_tensors(),
    "no buffer": in_state(lambda t, own: own.update({k: None for k in own if "mom" in k})),
    "empty states": in_state(lambda t, own: own.clear()),
    "state in place": in_state(lambda t, own: [v.mul_(2) for v in own.values() if v is not None]),
    **{
        f.__name__: f
        for f in (
            rate_as_tensor,
            another_parameter,
            new_states,
            forget_states,
            forget_one_state,
            other_mapping,
            fewer_parameters,
            other_order,
            more_parameters,
            another_group,
            copied_group,
            no_gradient,
            other_data,
            reload,
            in_a_hook,
        )
    },
}
OF_SGD = {
    "momentum": sets(momentum=0.5),
    "no momentum": sets(momentum=0),
    "nesterov": sets(momentum=0.5, nesterov=True),
    "dampening": sets(dampening=0.5),
    "rate_as_equal_tensor": rate_as_equal_tensor,
}
OF_ADAM = {
    "betas": sets(betas=(0.5, 0.6)),
    "eps": sets(eps=0.1),
    "without amsgrad": sets(amsgrad=False),
    "with amsgrad": sets(amsgrad=True),
    "decoupled": sets(decoupled_weight_decay=True, weight_decay=0.1),
    "betas_as_list": betas_as_list,
    "betas_as_tensors": betas_as_tensors,
    "counters of equal value": equal_tensors("step"),
    "averages of equal value": equal_tensors("exp_avg"),
    "squares of equal value": equal_tensors("exp_avg_sq"),
    "greatest of equal value": equal_tensors("max_exp_avg_sq"),
    "no averages": in_state(lambda t, own: own.pop("exp_avg")),
}
MORE = {
    **dict.fromkeys(("SGD", "momentum"), OF_SGD),
    **dict.fromkeys(("Adam", "amsgrad", "AdamW"), OF_ADAM),
}
CASES = [
    (kind, name, edit)
    for kind in KINDS
    for name, edit in {
        **EDITS,
        **MORE.get(kind, {}),
    }.items()
]


@pytest.mark.parametrize(
    ("kind", "edit"),
    [pytest.param(kind, edit, id=f"{kind}-{name}") for kind, name, edit in CASES],
)
@pytest.mark.parametrize("steps", [1, 3], ids=str)
def test_step_after(kind: str, edit: Any, steps: int) -> None:
    def run(t: Any) -> Any:
        params = [t.full((n,), 1.0 + n, dtype=t.float64, requires_grad=True) for n in (2, 1, 1, 1)]
        optimizer = KINDS[kind](t, list(params))
        for step in range(steps):
            set_gradients(t, params, step)
            optimizer.step()
        edit(t, optimizer, params)
        for step in range(steps, steps + 3):
            set_gradients(t, params, step)
            optimizer.step()
        states = [
            [(name, optimizer.state[p][name]) for name in sorted(optimizer.state[p])]
            for p in params
            if p in optimizer.state
        ]
        return [p.detach() for p in params], states, len(optimizer.state)

    both(run, rtol=1e-10)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_has_parameters_of_its_own(kind: str, again: Any) -> None:
    def run(t: Any) -> Any:
        p = t.ones(2, dtype=t.float64, requires_grad=True)
        optimizer = KINDS[kind](t, [p])
        p.grad = t.ones_like(p)
        optimizer.step()
        optimizer.step()
        other = again(optimizer)
        (q,) = other.param_groups[0]["params"]
        q.grad = t.full_like(q, 3.0)
        other.step()
        other.step()
        optimizer.step()
        return p.detach(), q.detach(), len(optimizer.state), len(other.state)

    both(run, rtol=1e-10)
