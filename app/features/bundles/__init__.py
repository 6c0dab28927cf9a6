"""Evidence bundles: one zip file with an agent's results and all their evidence, which anyone can verify and replay."""
