"""What to cite: the paper, the data, and each method that a report in fact used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Citation(NamedTuple):
    """One entry: anchor, text, link (or ""), and what it was used for."""

    key: str
    text: str
    url: str
    what: str


PAPER = Citation(
    "paper",
    "A. Corti, R. Pacelli, P. Rotondo, M. Gherardi, Microscopic and collective signatures of feature learning in "
    "neural networks (2025).",
    "https://arxiv.org/abs/2508.20989",
    "The theory under test.",
)
ALWAYS = (
    Citation(
        "diagnostics",
        "A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner, Rank-normalization, folding, and "
        "localization: an improved R̂, "
        "Bayesian Analysis 16, 667 (2021).",
        "https://doi.org/10.1214/20-BA1221",
        "R̂ and effective sample sizes.",
    ),
    Citation(
        "arviz",
        "R. Kumar, C. Carroll, A. Hartikainen, O. Martin, ArviZ, a unified library for exploratory analysis of "
        "Bayesian models in Python, "
        "J. Open Source Software 4, 1143 (2019).",
        "https://doi.org/10.21105/joss.01143",
        "Their implementation.",
    ),
    Citation(
        "tost",
        "D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach, "
        "J. Pharmacokinetics and Biopharmaceutics 15, 657 (1987).",
        "https://doi.org/10.1007/BF01068419",
        "Equivalence tests.",
    ),
    Citation(
        "stein",
        "A. Mira, R. Solgi, D. Imparato, Zero variance Markov chain Monte Carlo for Bayesian estimators, "
        "Statistics and Computing 23, 653 (2013).",
        "https://doi.org/10.1007/s11222-012-9344-6",
        "Control variates.",
    ),
    Citation(
        "fdr",
        "Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, J. Royal Statistical Society B 57, 289 "
        "(1995).",
        "https://doi.org/10.1111/j.2517-6161.1995.tb02031.x",
        "Single components of a family.",
    ),
    Citation(
        "variance",
        "C. J. Geyer, Practical Markov chain Monte Carlo, Statistical Science 7, 473 (1992); U. Wolff, Monte Carlo errors with less "
        "errors, Computer Physics Communications 156, 143 (2004).",
        "https://doi.org/10.1016/S0010-4655(03)00467-3",
        "Autocorrelation times, and the errors of errors.",
    ),
    Citation(
        "f-test",
        "R. A. Fisher, Statistical Methods for Research Workers, Oliver and Boyd, Edinburgh (1925).",
        "",
        "F test of the spread between chains against their own errors.",
    ),
    Citation(
        "student",
        "Student, The probable error of a mean, Biometrika 6, 1 (1908); degrees of freedom of a difference: B. L. Welch, Biometrika "
        "34, 28 (1947).",
        "https://doi.org/10.1093/biomet/6.1.1",
        "Thresholds of every test with an estimated error.",
    ),
)
METHODS = {
    "weights": (
        Citation(
            "york",
            "D. York, N. M. Evensen, M. L. Martínez, J. De Basabe Delgado, Unified equations for the slope, intercept, and standard "
            "errors of the best straight line, American Journal of Physics 72, 367 (2004).",
            "https://doi.org/10.1119/1.1632486",
            "Slope with errors in both variables.",
        ),
        Citation(
            "jackknife",
            "R. G. Miller, The jackknife: a review, Biometrika 61, 1 (1974).",
            "https://doi.org/10.1093/biomet/61.1.1",
            "Errors of slope and misfit, over chains.",
        ),
        Citation(
            "hotelling",
            "H. Hotelling, The generalization of Student's ratio, Annals of Mathematical Statistics 2, 360 (1931).",
            "https://doi.org/10.1214/aoms/1177732979",
            "Many components tested together.",
        ),
    ),
    "peak": (
        Citation(
            "iut",
            "R. L. Berger, Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 295 (1982).",
            "https://doi.org/10.1080/00401706.1982.10487790",
            "Intersection-union test of a curve that rises and then falls.",
        ),
    ),
    "reweighting": (
        Citation(
            "mbar",
            "M. R. Shirts, J. D. Chodera, Statistically optimal analysis of samples from multiple equilibrium states, Journal of "
            "Chemical Physics 129, 124105 (2008).",
            "https://doi.org/10.1063/1.2978177",
            "MBAR: the measured curve between the sampled temperatures.",
        ),
    ),
}
SAMPLERS = {
    "hmc": Citation(
        "hmc",
        "S. Duane, A. D. Kennedy, B. J. Pendleton, D. Roweth, Hybrid Monte Carlo, Physics Letters B 195, 216 (1987); "
        "step size by dual averaging: M. D. Hoffman, A. Gelman, J. Machine Learning Research 15, 1593 (2014).",
        "https://doi.org/10.1016/0370-2693(87)91197-X",
        "Sampler.",
    ),
    "mala": Citation(
        "mala",
        "G. O. Roberts, R. L. Tweedie, Exponential convergence of Langevin distributions and their discrete "
        "approximations, "
        "Bernoulli 2, 341 (1996).",
        "https://doi.org/10.2307/3318418",
        "Sampler.",
    ),
    "langevin": Citation(
        "langevin",
        "G. Parisi, Correlation functions and computer simulations, Nuclear Physics B 180, 378 (1981).",
        "https://doi.org/10.1016/0550-3213(81)90056-0",
        "Sampler; biased at a finite step.",
    ),
    "obabo": Citation(
        "obabo",
        "G. Bussi, M. Parrinello, Accurate sampling using Langevin dynamics, Physical Review E 75, 056707 (2007).",
        "https://doi.org/10.1103/PhysRevE.75.056707",
        "Sampler.",
    ),
    "tempering": Citation(
        "tempering",
        "K. Hukushima, K. Nemoto, Exchange Monte Carlo method and application to spin glass simulations, J. Phys. "
        "Soc. Japan 65, 1604 (1996).",
        "https://doi.org/10.1143/JPSJ.65.1604",
        "Sampler.",
    ),
    "gibbs": Citation(
        "gibbs",
        "J. S. Liu, F. Liang, W. H. Wong, The multiple-try method and local optimization in Metropolis sampling, "
        "J. American Statistical Association 95, 121 (2000).",
        "https://doi.org/10.1080/01621459.2000.10473908",
        "Sampler.",
    ),
    "nuts": Citation(
        "nuts",
        "M. D. Hoffman, A. Gelman, The No-U-Turn sampler, J. Machine Learning Research 15, 1593 (2014); "
        "D. Phan, N. Pradhan, M. Jankowiak, Composable effects for flexible and accelerated probabilistic "
        "programming in NumPyro (2019).",
        "https://arxiv.org/abs/1912.11554",
        "Sampler.",
    ),
}
# hmc and what is made of it: the Gaussian prior is followed exactly, the likelihood in two stages of least energy error.
INTEGRATOR = (
    Citation(
        "splitting",
        "B. Shahbaba, S. Lan, W. O. Johnson, R. M. Neal, Split Hamiltonian Monte Carlo, Statistics and Computing 24, 339 (2014).",
        "https://doi.org/10.1007/s11222-012-9373-1",
        "Splitting of hmc: the prior's part of a step is exact.",
    ),
    Citation(
        "two-stage",
        "R. I. McLachlan, On the numerical integration of ordinary differential equations by symmetric composition methods, SIAM "
        "Journal on Scientific Computing 16, 151 (1995).",
        "https://doi.org/10.1137/0916010",
        "The two-stage integrator of hmc.",
    ),
    Citation(
        "two-stage-hmc",
        "S. Blanes, F. Casas, J. M. Sanz-Serna, Numerical integrators for the hybrid Monte Carlo method, SIAM Journal on Scientific "
        "Computing 36, A1556 (2014).",
        "https://doi.org/10.1137/130932740",
        "The two-stage integrator of hmc.",
    ),
)
DATA = {
    "digits": Citation(
        "digits",
        "E. Alpaydin, C. Kaynak, Optical recognition of handwritten digits, UCI Machine Learning Repository (1998).",
        "https://doi.org/10.24432/C50P49",
        "Data.",
    ),
    "fashion-mnist": Citation(
        "fashion-mnist",
        "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine learning "
        "algorithms (2017).",
        "https://arxiv.org/abs/1708.07747",
        "Data.",
    ),
    "mnist": Citation(
        "mnist",
        "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, Proc. "
        "IEEE 86, 2278 (1998).",
        "https://doi.org/10.1109/5.726791",
        "Data.",
    ),
    "cifar10": Citation(
        "cifar10",
        "A. Krizhevsky, Learning multiple layers of features from tiny images, technical report, University of "
        "Toronto (2009).",
        "https://www.cs.toronto.edu/~kriz/learning-features-2009-TR.pdf",
        "Data.",
    ),
}


def citations(samplers: Iterable[str], data: Iterable[str], methods: Iterable[str] = ()) -> list[Citation]:
    """The paper first, then data, samplers and statistics, each that was used once; `methods` are keys of METHODS."""
    found = [PAPER]
    for name in dict.fromkeys(data):
        found += [entry for key, entry in DATA.items() if name == key or name.startswith(key)]
    for name in dict.fromkeys(samplers):
        found += [SAMPLERS[name]] if name in SAMPLERS else []
        found += INTEGRATOR if name in ("hmc", "tempering") else []
    found += list(ALWAYS)
    for name in methods:
        found += METHODS[name]
    return list(dict.fromkeys(found))


def methods_of(weights: bool, peak: bool, reweighted: bool) -> list[str]:
    """Keys of METHODS for what a report holds."""
    used = {"weights": weights, "peak": peak, "reweighting": reweighted}
    return [name for name, there in used.items() if there]
