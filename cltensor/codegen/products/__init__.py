"""Matrix products: dense, batched, with vectors, of sparse matrices; and the chains computed from their results."""
