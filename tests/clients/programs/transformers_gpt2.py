"""transformers: GPT-2 of a small random configuration: trained, saved, loaded, asked to go on."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1
)
model = GPT2LMHeadModel(config)
tokens = torch.randint(2, 50, (2, 12))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    loss = model(tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
model.eval()
print(model.generate(tokens[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=1).tolist())
torch.manual_seed(1)
print(
    model.generate(
        tokens[:, :4], max_new_tokens=6, do_sample=True, top_k=8, pad_token_id=1
    ).tolist()
)
print(
    model.generate(
        tokens[:, :4], max_new_tokens=4, num_beams=3, do_sample=False, pad_token_id=1
    ).tolist()
)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = GPT2LMHeadModel.from_pretrained(folder).eval()
print((again(tokens).logits - model(tokens).logits).abs().max().item())
