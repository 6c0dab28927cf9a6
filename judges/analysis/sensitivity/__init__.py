"""How much hangs on single verdicts, votes and weights: of one result, of who is ahead, and of a judge. Pure."""
