"""Ways of converting modules that PyTorch plans for the future."""

from __future__ import annotations

from ..nn.modules._conversions import (
    get_overwrite_module_params_on_conversion as get_overwrite_module_params_on_conversion,
)
from ..nn.modules._conversions import (
    get_swap_module_params_on_conversion as get_swap_module_params_on_conversion,
)
from ..nn.modules._conversions import (
    set_overwrite_module_params_on_conversion as set_overwrite_module_params_on_conversion,
)
from ..nn.modules._conversions import (
    set_swap_module_params_on_conversion as set_swap_module_params_on_conversion,
)
