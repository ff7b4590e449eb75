"""Linear algebra beyond products: decompositions, solvers, norms of matrices; `table.LINALG` names what users see."""
