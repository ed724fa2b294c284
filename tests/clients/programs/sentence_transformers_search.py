"""sentence-transformers: an encoder trained on pairs, saved, loaded, asked for what is nearest."""

import tempfile
import warnings

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

warnings.simplefilter("ignore")
torch.manual_seed(0)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat ran on mat fast slowly".split()
vocabulary = Tokenizer(WordLevel({word: k for k, word in enumerate(words)}, unk_token="[UNK]"))
vocabulary.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=vocabulary,
    unk_token="[UNK]",
    pad_token="[PAD]",
    cls_token="[CLS]",
    sep_token="[SEP]",
    mask_token="[MASK]",
)
config = BertConfig(
    vocab_size=len(words),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
left = ["the cat sat", "a dog ran fast"]
right = ["a cat sat on the mat", "the dog ran"]
with tempfile.TemporaryDirectory() as folder:
    tokenizer.save_pretrained(folder)
    BertModel(config).save_pretrained(folder)
    encoder = models.Transformer(folder, max_seq_length=16)
    model = SentenceTransformer(modules=[encoder, models.Pooling(32)], device="cpu")

    ranking = losses.MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        loss = ranking([model.tokenize(left), model.tokenize(right)], None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())

    model.save(folder)
    again = SentenceTransformer(folder, device="cpu")
found = again.encode(left + right, convert_to_tensor=True)
print(found.shape, found.sum().item())
print(again.similarity(found, found))
print((model.encode(left, convert_to_tensor=True) - found[:2]).abs().max().item())
asked = again.encode("the cat ran slowly", convert_to_tensor=True, normalize_embeddings=True)
print([(hit["corpus_id"], hit["score"]) for hit in util.semantic_search(asked, found, top_k=2)[0]])
