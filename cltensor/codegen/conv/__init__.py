"""Convolution: the correlation and its gradients, by the schedule that suits the sizes and the device."""
