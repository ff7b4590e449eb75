"""Random numbers: generators, draws that make tensors, and fillers of those that exist."""
