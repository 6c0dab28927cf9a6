"""Faults put into the whole service on purpose: processes killed and put to sleep, and what must hold afterwards."""
