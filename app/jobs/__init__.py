"""The work: taken in, queued, carried out by workers, followed and stopped."""
