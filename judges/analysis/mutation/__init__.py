"""Mutation testing of judges: applies known changes to an answer and checks that the affected leaves change."""
