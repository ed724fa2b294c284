"""torch.sym_int and its kin, of plain numbers."""

from __future__ import annotations

import pytest
from oracle import both

ASKED = """
sym_int(2.5) sym_int(-2.5) sym_int(float("inf")) sym_int("a") sym_int(torch.tensor(3.5))
sym_float(3) sym_float("3") sym_max(1,2) sym_max(1.0,2) sym_max(True,2) sym_max(3,2.5)
sym_max(2,float("nan")) sym_max("a",2) sym_min(3,2.5) sym_min(float("nan"),2) sym_min(3,2)
sym_not(True) sym_not(None) sym_not(torch.tensor(1)) sym_ite(True,1,2) sym_ite(False,1.,2.)
sym_ite(1,2,3) sym_ite(True,2,3.) sym_sum([]) sym_sum([1,2,3]) sym_sum((1.5,2)) sym_sqrt(9)
sym_sqrt(-1) _sym_cos(0) _sym_log2(8) _sym_tanh(0.5) sym_fresh_size(3)
""".split()


@pytest.mark.parametrize("asked", ASKED)
def test_answer_is_pytorchs(asked: str) -> None:
    both(lambda t: eval(f"torch.{asked}", {"torch": t}))
