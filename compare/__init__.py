"""Predictions against measurements: budget, verdicts, reports and the command line."""
