"""Example tasks that ship with assay."""
