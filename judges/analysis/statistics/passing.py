"""pass@k and pass^k of one task: the probability that at least one, or all, of k answers succeed. Pure."""

from __future__ import annotations

from math import comb


def pass_at_k(answers: int, successes: int, k: int) -> float:
    """Return the probability that at least one of ``k`` answers, drawn without replacement, is a success.

    The unbiased estimator of M. Chen et al., "Evaluating Large Language Models Trained on Code", arXiv 2107.03374
    (2021), equation 1: 1 - C(n - c, k) / C(n, k). The counts are exact integers, so only the result is rounded.

    >>> pass_at_k(5, 2, 2)
    0.7

    Raises:
        ValueError: ``k`` is not in 1..``answers``, or ``successes`` is not in 0..``answers``.
    """
    _check(answers, successes, k)
    all_draws = comb(answers, k)
    return (all_draws - comb(answers - successes, k)) / all_draws


def pass_hat_k(answers: int, successes: int, k: int) -> float:
    """Return the probability that all of ``k`` answers, drawn without replacement, are successes: C(c, k) / C(n, k).

    S. Yao et al., "tau-bench", arXiv 2406.12045 (2024), section 3 (there pass^k).

    >>> pass_hat_k(5, 4, 2)
    0.6

    Raises:
        ValueError: as for ``pass_at_k``.
    """
    _check(answers, successes, k)
    return comb(successes, k) / comb(answers, k)


def _check(answers: int, successes: int, k: int) -> None:
    if not 1 <= k <= answers:
        raise ValueError(f"k is {k}, but must be from 1 to the number of answers, {answers}")
    if not 0 <= successes <= answers:
        raise ValueError(f"successes is {successes}, but must be from 0 to the number of answers, {answers}")
