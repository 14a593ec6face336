"""Closed-form saddle-point predictions: numpy and scipy in float64, no sampling, no torch."""

from theory.predict import Level, Prediction, predict, predict_grid
from theory.spectrum import Spectrum

__all__ = ["Level", "Prediction", "Spectrum", "predict", "predict_grid"]
