"""Cost forecasts: the judge is run with simulated model replies, and each simulated request is priced."""
