"""run: many chains of one sampler to a wanted precision or a budget, with checkpoints, streaming sums and a manifest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from data.errors import InputError
from data.problem import Problem
from data.provenance import git_commit, versions
from sampling import checkpoint as files
from sampling import guards, held_out, observables
from sampling.diagnostics import GATES, MIN_ESS, RHAT_LIMIT, estimate
from sampling.lanes import LaneKernel
from sampling.protocol import Streams
from sampling.provenance import PACKAGES, device_name, precision
from sampling.run import Run
from sampling.series import SeriesStore
from sampling.settings import Settings, build, samplers, whole

__all__ = ["Interrupted", "run", "samplers"]

Progress = Callable[[dict[str, Any]], None]

BLOCK = 25  # steps between looks at the clock, the precision and the checkpoint
MAX_DRAWS = 100_000


class Interrupted(RuntimeError):
    """The run was stopped by the user; what it had is in the checkpoint, when there is one."""


def run(
    problem: Problem,
    sampler: str = "hmc",
    *,
    chains: int = 16,
    seed: int = 0,
    warmup: int | None = None,
    draws: int | None = None,
    target: float | None = None,
    budget_seconds: float | None = None,
    starts: Sequence[str] = ("prior", "aligned"),
    device: str = "cpu",
    dtype: str = "float64",
    threads: int | None = None,
    thin: int = 1,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 30.0,
    save: str | Path | None = None,
    progress: Progress | None = None,
    temperatures: Sequence[float] | None = None,
    max_kept: int = 20_000,
    **options: Any,
) -> Run:
    """Sample one posterior and return the Run.

    sampler  hmc (default), mala, underdamped, gibbs, tempering, nuts; langevin is unadjusted and biased, and its Run says so
    chains   run side by side; chain c starts as starts[c mod len(starts)]
    draws    exactly so many a chain; without it, until `target` is met, or 100,000
    target   wanted standard error of <D^2> relative to <D^2>; met only with R-hat <= 1.01 and 400 effective draws of every gate
             scalar (sampling.diagnostics); neither draws nor target given means target = 0.003
    budget_seconds   wall time after which sampling stops, whatever the precision
    device   "cpu", "cuda", "cuda:1";  dtype "float64" or "float32" (energies are summed in float64 either way)
    threads  CPU threads, default all that the process may use; chains are spread over them
    thin     steps between recorded draws
    checkpoint  path of a file written every `checkpoint_seconds`; where it exists the run goes on from it, and ends with exactly
             the numbers of an uninterrupted run on the same machine. Ctrl-C writes it and raises Interrupted. nuts keeps none
    save     path at which the Run is stored before its checkpoint is removed, so that no kill can lose it
    temperatures  log-likelihoods at these T are recorded too (series loglik_T), for reweighting between them
    options  the sampler's own (its `build`), and density="joint" or "collapsed" for mala and langevin

    Raises InputError for bad input, Interrupted after Ctrl-C.
    """
    settings = Settings.of(
        sampler=sampler,
        chains=chains,
        seed=seed,
        warmup=warmup,
        thin=thin,
        starts=starts,
        device=device,
        dtype=dtype,
        temperatures=temperatures,
        max_kept=max_kept,
        options=options,
    )
    if draws is not None:
        whole("draws", draws, 1)
    if threads is not None:
        whole("threads", threads, 1)
    if budget_seconds is not None and not budget_seconds > 0:
        raise InputError(f"budget_seconds = {budget_seconds}: the most seconds of sampling must be > 0")
    if draws is None and target is None:
        target = 0.003
    if target is not None and not 0 < target < 1:
        raise InputError(f"target = {target}: the relative standard error must lie between 0 and 1")
    if sampler == "nuts":
        from sampling.nuts import run_nuts

        found = run_nuts(problem, settings, draws=draws or 1000, budget_seconds=budget_seconds, progress=progress)
        if save is not None:
            found.save(save)
        return found
    with guards.arithmetic(settings.device, settings.chains, threads) as lanes, guards.signals() as asked:
        job = _Job(problem, settings, lanes, progress, checkpoint, checkpoint_seconds, asked)
        try:
            job.start()
            job.warm_up()
            job.sample(draws, target, budget_seconds)
        finally:
            job.close()
        found = job.result()
        if save is not None:
            found.save(save)
        job.discard()
        return found


class _Job:
    """The moving parts of one run: kernel, state, streams, series, sums, and where they stand."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        lanes: int,
        progress: Progress | None,
        checkpoint: str | Path | None,
        checkpoint_seconds: float,
        asked: list[int],
    ):
        self.asked, self.share = asked, 0.0
        self.problem, self.settings = problem, settings
        self.key = settings.key(problem)
        self.report = progress or (lambda event: None)
        self.path = None if checkpoint is None else Path(checkpoint)
        self.every = checkpoint_seconds
        kernel = build(problem, settings)
        self.target = kernel.target
        self.kernel = LaneKernel(kernel, lanes) if lanes > 1 else kernel
        self.streams = Streams(settings.seed, settings.chains, settings.device)
        self.store = SeriesStore(settings.max_kept)
        self.sums: dict[str, Tensor] = {}
        self.state: Any = None
        self.warmed, self.drawn = 0, 0
        self.tally = dict.fromkeys(("accept", "nan", "gradients", "steps"), 0.0)
        self.accepts = torch.zeros(settings.chains, dtype=torch.float64)
        self.seconds = {"warmup": 0.0, "sample": 0.0}
        self.resumed = 0
        self.saved = time.monotonic()

    def start(self) -> None:
        if self.path is not None and self.path.exists():
            self._resume()
        else:
            position = self.target.initial(list(self.settings.starts), self.streams)
            self.state = self.kernel.init(position)
            if not torch.isfinite(self.state.logp).all():
                raise InputError(
                    "the log-density is not finite at the start: check the scale of X, T and the precisions"
                )

    def warm_up(self) -> None:
        total = self.settings.warmup
        begun = time.monotonic()
        before = self.seconds["warmup"]
        first = self.warmed
        while self.warmed < total:
            self.state, info = self.kernel.step(self.state, self.streams)
            self.state = self.kernel.adapt(self.state, info)
            self.warmed += 1
            self.seconds["warmup"] = before + time.monotonic() - begun
            self._heed()
            if self.warmed % BLOCK == 0 or self.warmed == total:
                self._event(
                    "warmup", self.warmed, total, begun, self.warmed - first, acceptance=float(info.accept.mean())
                )
                if self.warmed < total:
                    self._checkpoint()
        if not self.drawn:
            # finish() is idempotent, and a checkpoint taken at the seam calls it again after resuming
            self.kernel.finish()

    def sample(self, draws: int | None, target: float | None, budget: float | None) -> None:
        total = MAX_DRAWS if draws is None else draws
        begun, first = time.monotonic(), self.drawn
        before = self.seconds["sample"]
        while self.drawn < total:
            # Blocks end at multiples of BLOCK, also after an interruption in the middle of one.
            for _ in range(min(BLOCK - self.drawn % BLOCK, total - self.drawn)):
                self._draw()
                self.seconds["sample"] = before + time.monotonic() - begun
                self._heed()
            share, met = self._precision(target if draws is None else None)
            done, goal = (self.drawn, total) if draws is not None else (round(100 * share), 100)
            self._event("sample", done, goal, begun, self.drawn - first, draws=self.drawn, share=share, budget=budget)
            if met or (budget is not None and self.seconds["sample"] >= budget):
                break
            self._checkpoint()

    def _draw(self) -> None:
        for _ in range(self.settings.thin):
            self.state, info = self.kernel.step(self.state, self.streams)
            self.tally["nan"] += float(info.nan.double().mean())
            self.tally["gradients"] += info.gradients
            self.tally["steps"] += 1
            self.accepts += info.accept.cpu()
        scalars = {name: value.cpu().numpy() for name, value in self.kernel.observe(self.state).items()}
        if self.settings.temperatures:
            g = self.state.position[..., : self.target.model.r]
            table = observables.loglik_at(self.target.model, g, list(self.settings.temperatures))
            scalars["loglik_T"] = table.cpu().numpy()
        if not self.store.widths:
            widths = {name: value.shape[1] if value.ndim == 2 else 0 for name, value in scalars.items()}
            self.store.layout(widths, self.settings.chains)
        self.store.add(np.concatenate([value.reshape(self.settings.chains, -1) for value in scalars.values()], axis=1))
        if isinstance(self.kernel, LaneKernel):
            self.kernel.accumulate(self.state, self.sums)
        else:
            self.target.accumulate(self.state.position, self.state.grad, self.sums)
        self.drawn += 1

    def _precision(self, target: float | None) -> tuple[float, bool]:
        """How much of the wanted precision there is (0 to 1), and whether it is met; looked at ever more rarely."""
        if target is None or self.drawn < 4 or self.drawn % (BLOCK * max(1, self.drawn // (8 * BLOCK))):
            return self.share, False
        series = self.store.series()
        gates = [estimate(series[name]) for name in GATES]
        relative = gates[0].mcse / abs(gates[0].mean) if gates[0].mean else np.inf
        least = min(min(one.ess_bulk, one.ess_tail) for one in gates)
        shares = [(target / relative) ** 2 if relative > 0 else 1.0, least / MIN_ESS]
        self.share = float(np.clip(np.nan_to_num(min(shares)), 0.0, 1.0))
        mixed = self.settings.chains < 2 or all(one.rhat <= RHAT_LIMIT for one in gates)
        return self.share, self.share >= 1.0 and mixed

    def _event(self, phase: str, done: int, total: int, begun: float, steps: int, **more: Any) -> None:
        elapsed = time.monotonic() - begun
        share = done / total if total else 1.0
        eta = elapsed * (1.0 - share) / share if 0 < share < 1 and steps else (0.0 if share >= 1 else None)
        budget = more.pop("budget", None)
        if budget is not None and eta is not None:
            eta = min(eta, max(0.0, budget - elapsed))
        event = {"phase": phase, "done": done, "total": total, "elapsed_s": elapsed, "eta_s": eta, "T": self.problem.T}
        self.report(event | more)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def _checkpoint(self, force: bool = False) -> None:
        if self.path is None or (not force and time.monotonic() - self.saved < self.every):
            return
        meta = {
            "key": self.key,
            "warmed": self.warmed,
            "drawn": self.drawn,
            "tally": self.tally,
            "seconds": self.seconds,
            "resumed": self.resumed,
            "share": self.share,
            "state": list(self.state._fields),
        }
        arrays = files.prefixed("state", {n: v.cpu().numpy() for n, v in self.state._asdict().items()})
        arrays |= files.prefixed("streams", self.streams.state_dict())
        arrays |= files.prefixed("kernel", self.kernel.state_dict())
        arrays |= files.prefixed("store", self.store.state_dict())
        arrays |= files.prefixed("sums", {n: v.cpu().numpy() for n, v in self.sums.items()})
        arrays["accepts"] = self.accepts.numpy()
        files.write(self.path, meta, arrays)
        self.saved = time.monotonic()

    def _resume(self) -> None:
        assert self.path is not None
        meta, arrays = files.read(self.path)
        if meta.get("key") != self.key:
            raise InputError(
                f"{self.path} was written by a run with another problem or other settings; "
                "resume with the same ones, or delete it to start again"
            )
        try:
            self._take(meta, arrays)
        except (KeyError, ValueError, TypeError, IndexError, RuntimeError) as error:
            raise InputError(f"{self.path}: not a whole checkpoint ({error!r}); delete it to start again") from error

    def _take(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Everything that a checkpoint holds, put back."""
        device = self.settings.device
        stored = {n: torch.from_numpy(v.copy()).to(device) for n, v in files.section(arrays, "state").items()}
        self.kernel.load_state_dict(files.section(arrays, "kernel"))
        blank = self.kernel.init(stored["position"])  # gives the State type of this kernel
        self.state = type(blank)(*(stored[name] for name in meta["state"]))
        self.streams.load_state_dict(files.section(arrays, "streams"))
        self.store.load_state_dict(files.section(arrays, "store"))
        self.sums = {n: torch.from_numpy(v.copy()).to(device) for n, v in files.section(arrays, "sums").items()}
        self.accepts = torch.from_numpy(arrays["accepts"].copy())
        self.warmed, self.drawn = int(meta["warmed"]), int(meta["drawn"])
        self.tally, self.seconds = meta["tally"], meta["seconds"]
        self.share = meta["share"]
        self.resumed = int(meta["resumed"]) + 1

    def _heed(self) -> None:
        """Between steps: if a signal came, write what there is and say how to go on."""
        if not self.asked:
            return
        where = f"interrupted after {self.warmed} warm-up steps and {self.drawn} draws a chain"
        if self.path is None:
            raise Interrupted(f"{where}; give a checkpoint path to be able to resume")
        self._checkpoint(force=True)
        raise Interrupted(f"{where}; run the same again to resume from {self.path}")

    def close(self) -> None:
        if isinstance(self.kernel, LaneKernel):
            self.kernel.close()

    def result(self) -> Run:
        count = max(self.drawn, 1)
        sums = {name: (value / count).cpu().numpy() for name, value in self.sums.items()}
        tools, reduction = self.target.instruments, self.target.model.reduction
        return Run(
            series=self.store.series(),
            sums=sums,
            basis=reduction.V @ tools.basis.double().cpu().numpy(),
            block=tools.block.cpu().numpy(),
            starts=list(self.settings.starts),
            manifest=self._manifest(),
            biased=self.kernel.biased,
        )

    def discard(self) -> None:
        """Remove the checkpoint: the Run is the result now."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _manifest(self) -> dict[str, Any]:
        settings, steps = self.settings, max(self.tally["steps"], 1.0)
        manifest = {
            "sampler": settings.sampler,
            "biased": self.kernel.biased,
            "density": type(self.target).__name__.lower(),
            "settings": self.kernel.settings(),
            "options": settings.options,
            "seed": settings.seed,
            "chains": settings.chains,
            "warmup": settings.warmup,
            "draws": self.drawn,
            "thin": settings.thin,
            "batch": self.store.batch,
            "starts": list(settings.starts),
            "temperatures": list(settings.temperatures),
            "acceptance": (self.accepts / steps).tolist(),
            "nan_share": self.tally["nan"] / steps,
            "gradients_per_chain": self.tally["gradients"],
            "seconds": self.seconds,
            "resumed": self.resumed,
            "device": device_name(settings.device),
            "dtype": settings.dtype,
            "tf32": precision()["cuda"] != "ieee",
            "rank": self.target.model.r,
            "problem": self.problem.describe(),
            "held_out": held_out.digest(self.problem.dataset),
            "versions": versions(PACKAGES),
            "git_commit": git_commit(),
        }
        if hasattr(self.kernel, "report"):
            manifest["tempering"] = self.kernel.report(self.state)
        return manifest
