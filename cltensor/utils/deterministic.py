"""`torch.utils.deterministic`: kept and answered. Programs that read memory before they write it see what was there."""

fill_uninitialized_memory = True
