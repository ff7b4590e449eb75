"""Matrix products: dense, batched, matrix-vector and sparse; and the pointwise chains fused into them as epilogues."""
