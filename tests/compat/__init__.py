"""The public toolkit's interface, as judge scripts meet it."""
