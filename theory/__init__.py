"""Closed-form saddle-point predictions: numpy and scipy in float64, no sampling, no torch."""
