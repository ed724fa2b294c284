"""einops: rearrangements as functions and as layers of a model, trained for a few steps."""

import torch
from einops import pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn

torch.manual_seed(0)
images = torch.randn(8, 3, 12, 12)
print(rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4).sum((0, 1))[:4])
print(reduce(images, "b c (h 2) (w 2) -> b c h w", "max").mean())
print(repeat(images[:, 0], "b h w -> b h (w k)", k=2).shape)
packed, shapes = pack([images[:, 0], images[:, 1:]], "b * h w")
print(packed.shape, [each.shape for each in unpack(packed, shapes, "b * h w")])

model = nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=16),
    nn.GELU(),
    Reduce("b t d -> b d", "mean"),
    nn.Linear(16, 4),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
labels = torch.arange(8) % 4
for _ in range(5):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
