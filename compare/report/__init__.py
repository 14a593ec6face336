"""Agreement reports: one self-contained HTML page, the same tables as CSV and Parquet, the figures as SVG."""
