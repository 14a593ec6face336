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
)
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


def citations(samplers: Iterable[str], data: Iterable[str]) -> list[Citation]:
    """The paper first, then data, samplers and statistics, each that was used once."""
    found = [PAPER]
    for name in dict.fromkeys(data):
        found += [entry for key, entry in DATA.items() if name == key or name.startswith(key)]
    found += [SAMPLERS[name] for name in dict.fromkeys(samplers) if name in SAMPLERS]
    found += list(ALWAYS)
    return list(dict.fromkeys(found))
