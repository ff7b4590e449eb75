"""Images: interpolation, sampling at points, pooling."""
