# %% [markdown]
# # The paper in ten minutes
#
# arXiv:2508.20989 predicts, for a Bayesian network with one hidden layer, how far apart the two classes lie in the space of the hidden
# units, `<D^2>`. This script loads data, asks the theory, samples the posterior itself, and compares the two. It runs as it stands
# (`python docs/tutorial.py`), or cell by cell in an editor or notebook that reads the percent format.

# %%
import arviz
import matplotlib

import compare
import data
import sampling
import theory
from data.problem import Problem

matplotlib.use("Agg")

# %% [markdown]
# ## Data
# 20 images of handwritten digits, even against odd, embedded in the package. `X` is standardised; `y` and `classes` are +1 and -1.

# %%
dataset = data.load("digits", classes="even/odd", P=20)
print(dataset.name, dataset.X.shape, dataset.classes.sum())

# %% [markdown]
# ## Theory
# Every level of the ladder for `<D^2>`: infinite width, Eq. (4), Eq. (3), Eq. (3) averaged over p(Q|y). The term that Eq. (4) drops is
# Delta1, so the two differ by just that.

# %%
problem = Problem(dataset, N1=10, T=0.3)
prediction = theory.predict(problem)
for name, level in prediction.levels.items():
    print(f"{name:16s} {level.value:.4f}")
print(
    "Eq. (4) - Eq. (3) =",
    prediction.levels["eq4"].value - prediction.levels["eq3"].value,
    "= Delta1 =",
    prediction.delta1,
)

# %% [markdown]
# ## The posterior itself
# Eight chains of the default sampler. `assess` says whether the run may be relied on: R-hat, effective draws, spread of the chains.

# %%
run = sampling.run(problem, chains=8, draws=200, seed=1)
diagnosis = sampling.assess(run)
print(diagnosis.status)
print(diagnosis.frame())

# %% [markdown]
# The run as an ArviZ object: ArviZ's own summaries and plots take it.

# %%
chains = run.inference_data()
print(arviz.summary(chains, var_names=["d2", "Q"]))
axes = arviz.plot_trace(chains, var_names=["d2", "Q"])

# %% [markdown]
# ## Theory against measurement
# `compare.verify` does all of this for a list of temperatures and gives pandas tables: each level with its verdict, and the error budget
# of Eq. (4). With `out="FOLDER"` it writes the report as a page, too.

# %%
report = compare.verify(
    [Problem(dataset, N1=10, T=T) for T in (0.3, 1.0)], chains=8, draws=200, seed=1, first_order=False
)
print(report.sentence)
print(report.levels)
print(report.budget)
