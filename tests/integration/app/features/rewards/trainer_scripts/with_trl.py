"""One step of GRPO with TRL and a randomly initialized model. Prints rewards and logs."""

import json
import sys

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from app.features.rewards.adapters.trl import assay_reward

given = json.loads(sys.argv[1])
torch.manual_seed(0)
words = ["<pad>", "<eos>", "<unk>", *(f"word{number}" * (number % 4 + 1) for number in range(60))]
backend = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=backend, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
)
policy = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(words),
        n_positions=64,
        n_embd=32,
        n_layer=1,
        n_head=2,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
)
before = {name: value.clone() for name, value in policy.named_parameters()}
reward = assay_reward(given["url"], deadline_s=60)
rewards = []


def recorded(**columns):
    found = reward(**columns)
    rewards.extend(found)
    return found


recorded.__name__ = "assay"
prompts = ["word1 word2", "word5 word6"]
dataset = Dataset.from_list([{"prompt": prompt, "rubric": json.dumps(given["rubric"])} for prompt in prompts])
config = GRPOConfig(
    output_dir="out",
    max_steps=1,
    per_device_train_batch_size=16,
    num_generations=8,
    max_completion_length=12,
    learning_rate=0.01,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    bf16=False,
    disable_tqdm=True,
)
trainer = GRPOTrainer(
    model=policy, reward_funcs=recorded, args=config, train_dataset=dataset, processing_class=tokenizer
)
trainer.train()
changed = any(not torch.equal(value, before[name]) for name, value in policy.named_parameters())
print(json.dumps({"rewards": rewards, "log": trainer.state.log_history, "weights_changed": changed}))
