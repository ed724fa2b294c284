"""peft: low ranks, DoRA and prefixes on a small Llama, by transformers' Trainer; saved, merged."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, PrefixTuningConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)


class Sequences(Dataset):
    """Eight sequences of tokens, each its own label."""

    def __init__(self):
        self.tokens = torch.randint(3, 60, (8, 10), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, k):
        return {"input_ids": self.tokens[k], "labels": self.tokens[k]}


def base():
    """The model that is adapted."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config)


tokens = Sequences().tokens[:2]
where = ["q_proj", "v_proj"]
for chosen in (
    LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=where),
    LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=where, use_dora=True),
    PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
):
    model = get_peft_model(base(), chosen)
    print(type(chosen).__name__, model.get_nb_trainable_parameters())
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=4,
            num_train_epochs=2,
            learning_rate=1e-2,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=Sequences())
        trainer.remove_callback(PrinterCallback)  # which prints times
        trainer.train()
        print([step["loss"] for step in trainer.state.log_history if "loss" in step])
        model.eval()
        print(model(input_ids=tokens).logits.sum().item())
        model.save_pretrained(folder)
        again = PeftModel.from_pretrained(base(), folder).eval()
        print((again(input_ids=tokens).logits - model(input_ids=tokens).logits).abs().max().item())
    if isinstance(chosen, LoraConfig):
        merged = model.merge_and_unload()
        print(type(merged).__name__, merged(input_ids=tokens).logits.sum().item())
