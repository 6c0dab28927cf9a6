"""The training script of docs/rewards.md: one step on the CPU, with a small random model. Prints its log."""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

given = json.loads(sys.argv[1])
torch.manual_seed(0)
words = ["<pad>", "<eos>", "<unk>", *(f"word{number}" * (number % 4 + 1) for number in range(60))]
backend = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(
    tokenizer_object=backend, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
).save_pretrained("policy")
shape = {"n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2}
tokens = {"vocab_size": len(words), "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
before = GPT2LMHeadModel(GPT2Config(**shape, **tokens))
before.save_pretrained("policy")
rows = [{"prompt": prompt, "rubric": json.dumps(given["rubric"])} for prompt in ("word1 word2", "word5 word6")]
Path("tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

names = {}
exec(compile(given["script"], "docs/rewards.md", "exec"), names)
after = dict(names["trainer"].model.named_parameters())
changed = any(not torch.equal(value, after[name]) for name, value in before.named_parameters())
print(json.dumps({"log": names["trainer"].state.log_history, "weights_changed": changed}))
