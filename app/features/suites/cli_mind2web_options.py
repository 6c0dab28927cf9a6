"""Command line options of ``assay mind2web``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from judges.suites.mind2web.rules import Metric, NoPositive, Shuffle

DataRoot: TypeAlias = Annotated[
    Path | None,
    typer.Option("--data-root", help="Data file, folder of a split, or folder with files named after the split."),
]
SplitName: TypeAlias = Annotated[
    str | None, typer.Option("--split", help="Split, for example test_task. Default for a single file: its name.")
]
ScoresPickle: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--scores-pickle", help="Candidate scores of the ranker: scores_all_data.pkl, or Parquet converted from it."
    ),
]
ScoresSha256: TypeAlias = Annotated[str | None, typer.Option("--scores-sha256", help="Expected SHA-256 of the pickle.")]
TopK: TypeAlias = Annotated[int, typer.Option("--top-k", min=1, help="Number of top-ranked candidates to ask about.")]
Temperature: TypeAlias = Annotated[
    float, typer.Option("--temperature", min=0.0, max=2.0, help="Sampling temperature of the model.")
]
MaxExamples: TypeAlias = Annotated[int | None, typer.Option("--max-examples", min=1, help="Maximum number of steps.")]
PromptTemplate: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--prompt-template",
        help="JSON list of chat messages; the question is appended to the last one. Default: built-in template.",
    ),
]
OutputDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output-dir", help="Folder for figures, predictions and journal. An interrupted run resumes from it."
    ),
]
ModelName: TypeAlias = Annotated[str | None, typer.Option("--model", help="provider/model. Default: ASSAY_MODEL.")]
Seed: TypeAlias = Annotated[
    int, typer.Option("--seed", min=0, help="Seed for the order of candidates and for the intervals.")
]
ShuffleRule: TypeAlias = Annotated[
    Shuffle, typer.Option("--shuffle", help="step: one random generator per step; stream: one for all steps.")
]
MaxLlm: TypeAlias = Annotated[
    int | None, typer.Option("--max-llm", min=1, help="Maximum concurrent model requests. Default: 30.")
]
MetricRule: TypeAlias = Annotated[Metric, typer.Option("--metric", help="Rule for a successful step.")]
NoPositiveRule: TypeAlias = Annotated[
    NoPositive, typer.Option("--no-positive", help="Score of steps without a gold element within top-k.")
]
CompatTrailing: TypeAlias = Annotated[
    bool, typer.Option("--compat-trailing", help="Reproduce the published handling of the end of a split.")
]
Predictions: TypeAlias = Annotated[
    Path | None, typer.Option("--predictions", help="Score the predictions in this file instead of asking a model.")
]
NoCache: TypeAlias = Annotated[bool, typer.Option("--no-cache", help="Disable the reply cache.")]
