"""An integer tensor of one element, of any rank, where an int or a size is wanted."""

from __future__ import annotations

import pytest
from oracle import both

ASKED = """
zeros(n) zeros(m) zeros(n,m) zeros([n,m]) zeros(3,n) zeros(size=n) zeros(f) zeros(two) eye(n)
eye(n,m) arange(n) arange(0,n,one) ones(2).expand(n,2) ones(1,2).expand(m,-1) x.new_zeros(n)
x.narrow(0,0,n) x.view(n,2) x.view(n,-1) x.reshape(n,2) x[:n] x.split(n) x.split([n,n]) x.repeat(n)
x.repeat(n,2) x.tile(n) topk(x,n) x.kthvalue(n) x.roll(n) x.roll(n,0) x.roll(one,zero) sum(y,one)
y.sum(dim=one) y.mean(one) y.amax(one) y.max(one) y.argmax(one) y.cumsum(one) y.softmax(one)
x.repeat_interleave(n) x.select(0,n) y.transpose(zero,one) y.unsqueeze(one) y.squeeze(one)
y.permute(one,zero) tensor_split(x,n) tensor_split(x,(n,)) tril(y,one) diagonal(y,one)
stack([x,x],one) cat([x,x],zero) nn.functional.pad(x,(n,n)) bincount(one,minlength=n)
nn.functional.interpolate(x[None,None],n) nn.functional.adaptive_avg_pool1d(x[None],n)
nn.functional.max_pool1d(x[None],n) conv1d(x[None,None],ones(1,1,2),stride=n) fft.fft(x,n)
x.add(1,alpha=n) clamp(x,n) pow(x,n) x.unflatten(0,(n,-1)) x.as_strided((n,),(one,)) full((n,),1.)
nn.functional.embedding(one,y,padding_idx=one) randint(0,n,(2,)).shape rand(n).shape
""".split()


@pytest.mark.parametrize("asked", ASKED)
def test_one_element_is_an_int(asked: str) -> None:
    def script(t: object) -> object:
        names = {name: getattr(t, name) for name in dir(t) if not name.startswith("_")}
        tensor = names["tensor"]
        given = {
            "n": tensor([3]),
            "m": tensor([[3]]),
            "f": tensor([3.0]),
            "two": tensor([1, 2]),
            "one": tensor([1]),
            "zero": tensor([0]),
            "x": names["arange"](6.0),
            "y": names["arange"](6.0).view(2, 3),
        }
        return eval(asked, names | given)

    both(script)
