"""How good judges are: their verdicts on labelled claims against those of people."""
