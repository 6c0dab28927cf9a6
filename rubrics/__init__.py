"""Rubrics: weighted trees of claims and checks, their gates and their scores. Pure: no I/O and no asyncio."""
