"""Checking results again from what they are made of: pure, no model, no page is asked for."""
