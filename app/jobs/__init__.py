"""Job queue and workers: intake, execution, progress, pausing, takeover and cancellation."""
