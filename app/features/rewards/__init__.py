"""Rewards for reinforcement learning: verification of answers over HTTP."""
