"""x-transformers: a decoder, trained for a few steps on one sequence, then asked to go on."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

torch.manual_seed(0)
model = AutoregressiveWrapper(
    TransformerWrapper(
        num_tokens=32,
        max_seq_len=24,
        attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, use_rmsnorm=True),
    )
)
tokens = torch.randint(0, 32, (2, 24))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(5):
    loss = model(tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
model.eval()
print(model.generate(tokens[:, :4], 8, temperature=0.0).tolist())

encoder = TransformerWrapper(
    num_tokens=32,
    max_seq_len=24,
    attn_layers=Encoder(dim=32, depth=1, heads=4, alibi_pos_bias=True),
)
mask = torch.ones(2, 24).bool()
mask[:, 12:] = False
print(encoder(tokens, mask=mask).sum().item())
