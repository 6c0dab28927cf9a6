"""Step benchmarks (Mind2Web and Multimodal-Mind2Web~), run from the command line or as service jobs."""
