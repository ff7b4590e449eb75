"""Operators of networks: activations, losses, norms, convolution, pooling, attention, recurrent layers and what goes with them."""
