"""Order, prefixes and selection: sorts, scans, masks, counts."""
