"""Adapters between ``POST /v1/verify`` and trainers, one file each.

They run in the process or container of the trainer and import only ``assay_client``, which needs httpx, and the
trainer. A masked reward is never replaced by 0.
"""
