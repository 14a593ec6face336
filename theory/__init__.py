"""Closed-form saddle-point predictions: numpy and scipy in float64, no sampling, no torch."""

from theory.action import SaddlePoint, solve
from theory.order_parameter import OrderParameter
from theory.predict import Level, Prediction, predict, predict_grid
from theory.spectrum import Spectrum

__all__ = ["Level", "OrderParameter", "Prediction", "SaddlePoint", "Spectrum", "predict", "predict_grid", "solve"]
