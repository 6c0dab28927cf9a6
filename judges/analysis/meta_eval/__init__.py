"""Meta-evaluation: agreement of judges with people on labelled claims."""
