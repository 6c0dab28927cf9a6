"""The options of ``assay mind2web``, each with what it means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from judges.suites.mind2web.rules import Metric, NoPositive, Shuffle

DataRoot: TypeAlias = Annotated[
    Path | None,
    typer.Option("--data-root", help="One file, the folder of a split, or a folder with files named after the split."),
]
SplitName: TypeAlias = Annotated[
    str | None, typer.Option("--split", help="As test_task. Default for one file: its name.")
]
ScoresPickle: TypeAlias = Annotated[
    Path | None,
    typer.Option("--scores-pickle", help="The ranker's scores: scores_all_data.pkl, or Parquet made of it."),
]
ScoresSha256: TypeAlias = Annotated[
    str | None, typer.Option("--scores-sha256", help="What the SHA-256 of the pickle must be.")
]
TopK: TypeAlias = Annotated[
    int, typer.Option("--top-k", min=1, help="Candidates ranked below this, counted from 0, are asked about.")
]
Temperature: TypeAlias = Annotated[float, typer.Option("--temperature", min=0.0, max=2.0, help="Of the model.")]
MaxExamples: TypeAlias = Annotated[
    int | None, typer.Option("--max-examples", min=1, help="Only the first so many steps.")
]
PromptTemplate: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--prompt-template", help="A JSON list of chat messages, the last one completed. Default: the shipped one."
    ),
]
OutputDir: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output-dir", help="Where figures, predictions and the journal go; a stopped run goes on there."),
]
ModelName: TypeAlias = Annotated[str | None, typer.Option("--model", help="provider/model. Default: ASSAY_MODEL.")]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="Of the order of play, and of the intervals.")]
ShuffleRule: TypeAlias = Annotated[
    Shuffle, typer.Option("--shuffle", help="The order of each step by itself, or one generator for all in a row.")
]
MaxLlm: TypeAlias = Annotated[int | None, typer.Option("--max-llm", min=1, help="Model requests at once. Default: 30.")]
MetricRule: TypeAlias = Annotated[Metric, typer.Option("--metric", help="What makes a step right.")]
NoPositiveRule: TypeAlias = Annotated[
    NoPositive, typer.Option("--no-positive", help="What steps without a right element within top-k count.")
]
CompatTrailing: TypeAlias = Annotated[
    bool, typer.Option("--compat-trailing", help="Published keys with the quirk at the end of a split.")
]
Predictions: TypeAlias = Annotated[
    Path | None, typer.Option("--predictions", help="Score this file's predictions; no model is asked.")
]
NoCache: TypeAlias = Annotated[bool, typer.Option("--no-cache", help="Neither use nor keep replies of the model.")]
