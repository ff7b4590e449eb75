"""Regions of memory moved as they are: copies, joins, padding, triangles."""
