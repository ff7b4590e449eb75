"""Expression and operand descriptions in, OpenCL C text and launches out; knows nothing of tensors or gradients."""
