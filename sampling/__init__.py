"""Monte Carlo on the posterior; knows no prediction. `run` samples, `Run` is what comes out, `assess` judges it."""

from sampling.chains import Interrupted, run, samplers
from sampling.diagnostics import Diagnosis, assess
from sampling.run import Run

__all__ = ["Diagnosis", "Interrupted", "Run", "assess", "run", "samplers"]
