"""The figures of arXiv:2508.20989 made again: theory of every level, measured points where there are chains, numbers beside them."""
