"""What the paper's figures are made with: data, loads, temperatures, sizes, and the precision of level 4."""

from __future__ import annotations

from dataclasses import dataclass, field

from data.errors import InputError

FIGURES = ("d2", "lambda2", "scaling", "kernels")
SCALING = (("gaussian", None), ("cifar10", "even/odd"), ("mnist", "0/1"))


@dataclass(frozen=True)
class Settings:
    """All flags of `saddlecheck figures` that decide a number.

    data, classes, P, seed   of D^2(T), Lambda2 and the kernels; label_seed of the random labels
    alphas, temperatures     of D^2(T);  alpha, T the one load and temperature of the other figures
    sizes                    P of the scaling figure
    first_order, rel_error   level 4, and its standard error relative to the effect
    """

    data: str = "cifar10"
    classes: str | None = "even/odd"
    P: int = 200
    seed: int | None = None
    label_seed: int = 0
    alphas: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    temperatures: tuple[float, ...] = (0.001, 0.00316, 0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0)
    alpha: float = 2.0
    T: float = 0.1
    sizes: tuple[int, ...] = (50, 100, 200, 400, 800)
    activation: str = "erf"
    lambda0: float = 1.0
    lambda1: float = 1.0
    first_order: bool = True
    rel_error: float = 0.03
    draw_seed: int = 0
    only: tuple[str, ...] = field(default=FIGURES)

    def __post_init__(self) -> None:
        unknown = [name for name in self.only if name not in FIGURES]
        if unknown or not self.only:
            raise InputError(f"--only {','.join(unknown)}: choose from {', '.join(FIGURES)}")
        for name, values in (("--alpha", (*self.alphas, self.alpha)), ("--T", (*self.temperatures, self.T))):
            if not values or min(values) <= 0:
                raise InputError(f"{name}: every value must be > 0")
        if not self.sizes or min(self.sizes) < 4:
            raise InputError("--sizes: numbers of patterns, 4 or more")

    def width(self, P: int, alpha: float) -> int:
        """N1 = P/alpha, to the nearest whole number."""
        return max(1, round(P / alpha))
