"""The steps that lead from an empty database to the present tables."""
