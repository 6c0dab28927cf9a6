"""What a model is shown (messages, page views, prompts) and how its verdict is read."""
