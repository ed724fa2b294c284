"""transformers: BERT, Llama, T5 and a vision transformer of small random configurations."""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)

tokens = torch.arange(2, 26).reshape(2, 12)
mask = torch.ones_like(tokens)
mask[1, 8:] = 0


def step(name, model, **inputs):
    model.train()
    torch.manual_seed(1)
    loss = model(**inputs).loss
    loss.backward()
    total = sum(p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None)
    print(name, loss.item(), total.item())
    return model.eval()


torch.manual_seed(0)
small = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
bert = BertForSequenceClassification(BertConfig(vocab_size=50, num_labels=3, **small))
step("bert", bert, input_ids=tokens, attention_mask=mask, labels=torch.tensor([0, 2]))

llama = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_key_value_heads=2, **small))
step("llama", llama, input_ids=tokens, labels=tokens)
print(llama.generate(tokens[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0).tolist())

t5 = T5ForConditionalGeneration(
    T5Config(
        vocab_size=50,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
)
step("t5", t5, input_ids=tokens, attention_mask=mask, labels=tokens[:, :6].contiguous())
print(t5.generate(tokens, max_new_tokens=6, do_sample=False).tolist())

vit = ViTForImageClassification(ViTConfig(image_size=16, patch_size=4, num_labels=3, **small))
step("vit", vit, pixel_values=torch.randn(2, 3, 16, 16), labels=torch.tensor([0, 2]))
