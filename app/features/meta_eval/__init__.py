"""Meta-evaluation: agreement of judges with human labels."""
