"""Messages about missing or repeated gradients."""

from __future__ import annotations

from collections.abc import Sequence

from ... import distributed as dist

CHANGED = (
    "Your training graph has changed in this iteration, e.g., one parameter is unused in first "
    "iteration, but then got used in the second iteration. this is not compatible with "
    "static_graph set to True."
)
_STATIC_LEFT = (
    "This error indicates that your training graph has changed in this iteration, e.g., one "
    "parameter is used in first iteration, but then got unused in the second iteration. this is "
    "not compatible with static_graph set to True."
)
_LEFT = (
    "This error indicates that your module has parameters that were not used in producing loss. "
)
_SEARCH = (
    "You can enable unused parameter detection by passing the keyword argument "
    "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \n"
    "making sure all `forward` function outputs participate in calculating loss. "
)
_SEARCHED = (
    "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` "
    "outputs participate in computing loss. You can fix this by making sure all `forward` function "
    "outputs participate in calculating loss. "
)
_OUTPUTS = (
    "\nIf you already have done the above, then the distributed data parallel module wasn't able "
    "to locate the output tensors in the return value of your module's `forward` function. Please "
    "include the loss function and the structure of the return value of `forward` of your module "
    "when reporting this issue (e.g. list, dict, iterable)."
)
_DEBUG = (
    "\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO "
    "or DETAIL to print out information about which particular parameters did not receive gradient "
    "on this rank as part of this error"
)
ALL_USED = (
    "find_unused_parameters=True was specified in DDP constructor, but did not find any unused "
    "parameters in the forward pass. This flag results in an extra traversal of the autograd graph "
    "every iteration,  which can adversely affect performance. If your model indeed never has any "
    "unused parameters in the forward pass, consider turning this flag off. Note that this warning "
    "may be a false positive if your model has flow control causing later iterations to have "
    "unused parameters."
)
TOO_LATE = (
    "set_static_graph() should be called before training loop starts and after "
    "DistributedDataParallel is constructed."
)


def _names_are_listed() -> bool:
    return dist.get_debug_level() != dist.DebugLevel.OFF


def unfinished_message(
    missing: Sequence[int], names: Sequence[str], static: bool, searched: bool
) -> str:
    """The message for a backward without the gradients of some parameters.

    Args:
        missing: the indices of these parameters.
        names: the names of all parameters.
        static: whether the graph was declared static.
        searched: whether unused parameters were searched for.
    """
    why = _STATIC_LEFT if static else _LEFT + (_SEARCHED if searched else _SEARCH) + _OUTPUTS
    rank = dist.get_rank()
    told = ", ".join(names[number] for number in missing)
    return "".join(
        (
            "Expected to have finished reduction in the prior iteration before starting a new "
            f"one. {why}",
            f"\nParameters which did not receive grad for rank {rank}: {told}"
            if _names_are_listed()
            else "",
            f"\nParameter indices which did not receive grad for rank {rank}: "
            f"{' '.join(map(str, missing))}",
            "" if _names_are_listed() else _DEBUG,
        )
    )


def twice(number: int, name: str) -> str:
    """The message for a second gradient of a parameter in one backward."""
    who = f"Parameter at index {number} with name {name} has been marked as ready twice."
    return (
        "Expected to mark a variable ready only once. This error is caused by one of the "
        "following reasons: 1) Use of a module parameter outside the `forward` function. "
        "Please make sure model parameters are not shared across multiple concurrent "
        "forward-backward passes. or try to use _set_static_graph() as a workaround if this "
        "module graph does not change during training loop.2) Reused parameters in multiple "
        "reentrant backward passes. For example, if you use multiple `checkpoint` functions to "
        "wrap the same part of your model, it would result in the same set of parameters been "
        "used by different reentrant backward passes multiple times, and hence marking a "
        "variable ready multiple times. DDP does not support such use cases in default. You "
        "can try to use _set_static_graph() as a workaround if your module graph does not "
        f"change over iterations.\n{who} This means that multiple autograd engine  hooks have "
        "fired for this particular parameter during this iteration."
    )
