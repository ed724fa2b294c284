"""transformers: experts, a state space, a window, an encoder and decoder; beams and sampling."""

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    CLIPConfig,
    CLIPModel,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Wav2Vec2Config,
    Wav2Vec2ForCTC,
    get_linear_schedule_with_warmup,
    set_seed,
)

set_seed(0)
tokens = torch.arange(2, 26).reshape(2, 12)
small = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def train(name, model, **inputs):
    model.train()
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, 1, 4)
    for _ in range(2):
        loss = model(**inputs).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    print(name, loss.item(), norm.item())
    return model.eval()


def generate(model, **options):
    torch.manual_seed(2)
    print(model.generate(tokens[:, :4], max_new_tokens=6, pad_token_id=0, **options).tolist())


language = {"input_ids": tokens, "labels": tokens}
mistral = MistralConfig(vocab_size=50, num_key_value_heads=2, sliding_window=4, **small)
model = train("mistral", MistralForCausalLM(mistral), **language)
generate(model, do_sample=True, top_k=5, temperature=0.8)
generate(model, num_beams=3)
qwen = Qwen2Config(vocab_size=50, num_key_value_heads=2, **small)
model = train("qwen", Qwen2ForCausalLM(qwen), **language)
generate(model, do_sample=True, top_p=0.9, repetition_penalty=1.2)
mixtral = MixtralConfig(vocab_size=50, num_key_value_heads=2, num_local_experts=4, **small)
generate(train("mixtral", MixtralForCausalLM(mixtral), **language), do_sample=False)
mamba = MambaConfig(vocab_size=50, hidden_size=16, state_size=4, num_hidden_layers=2)
generate(train("mamba", MambaForCausalLM(mamba), **language), do_sample=False)

sizes = {
    f"{side}_{what}": size
    for side in ("encoder", "decoder")
    for what, size in {"layers": 2, "attention_heads": 4, "ffn_dim": 64}.items()
}
bart = BartConfig(vocab_size=50, d_model=32, max_position_embeddings=64, **sizes)
generate(train("bart", BartForConditionalGeneration(bart), **language), num_beams=2)

clip = CLIPModel(
    CLIPConfig(
        text_config={"vocab_size": 50, **small},
        vision_config={"image_size": 16, "patch_size": 4, **small},
        projection_dim=16,
    )
)
train("clip", clip, input_ids=tokens, pixel_values=torch.randn(2, 3, 16, 16), return_loss=True)
sound = Wav2Vec2Config(
    vocab_size=20,
    conv_dim=(8, 8),
    conv_stride=(5, 2),
    conv_kernel=(10, 3),
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=2,
    mask_time_prob=0.0,
    mask_feature_prob=0.0,
    layerdrop=0.0,
    **small,
)
labels = torch.randint(1, 20, (2, 5))
train("wav2vec", Wav2Vec2ForCTC(sound), input_values=torch.randn(2, 400), labels=labels)
