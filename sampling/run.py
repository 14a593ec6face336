"""Run: what a sampler measured, with its provenance; one NetCDF file, written atomically and checked on reading."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import InputError
from sampling.atomic import replacing
from sampling.untrusted import check_file, check_run

if TYPE_CHECKING:
    import xarray

FORMAT = 1


@dataclass(eq=False)
class Run:
    """Measurements on one posterior.

    series    name -> (chains, draws) float64, or (chains, draws, temperatures) for loglik_T; names in `sampling.observables`
    sums      name -> (chains, ...) mean over each chain's draws: ww, ww_stein (k, k) in `basis`; ss (m, m) on `block`
    basis     (N0, k) orthonormal directions of input space, the class direction first; made from the data alone
    block     (m,) indices of the patterns of ss
    starts    kind of start of each chain
    manifest  versions, device, dtype, seeds, settings, acceptance, counts, times, the problem and its data's checksum
    biased    True for a sampler whose invariant density is not the posterior: it must be marked wherever it is shown
    """

    series: dict[str, np.ndarray]
    sums: dict[str, np.ndarray]
    basis: np.ndarray
    block: np.ndarray
    starts: list[str]
    manifest: dict[str, Any]
    biased: bool = False
    extra: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def chains(self) -> int:
        return self.series["d2"].shape[0]

    @property
    def draws(self) -> int:
        """Entries a chain: draws, or batch means of `manifest["batch"]` draws each."""
        return self.series["d2"].shape[1]

    def dataset(self) -> xarray.Dataset:
        """The scalars as an xarray.Dataset with dims (chain, draw), which ArviZ's functions accept as they are."""
        import xarray

        scalars = {name: (("chain", "draw"), value) for name, value in self.series.items() if value.ndim == 2}
        coords = {"chain": np.arange(self.chains), "draw": np.arange(self.draws)}
        return xarray.Dataset(scalars, coords=coords, attrs={"start": json.dumps(self.starts)})

    def inference_data(self) -> Any:
        """The scalars as an ArviZ object (group `posterior`), for ArviZ's own plots and summaries."""
        import arviz

        return arviz.InferenceData(posterior=self.dataset(), warn_on_custom_groups=False)

    def datatree(self) -> xarray.DataTree:
        """Everything as an xarray.DataTree: groups series, sums; manifest and starts as JSON attributes."""
        import xarray

        def dims(name: str, value: np.ndarray) -> list[str]:
            return [f"{name}_{axis}" for axis in range(value.ndim)]

        series = {name: (["chain", "draw", *dims(name, value)[2:]], value) for name, value in self.series.items()}
        groups = {
            "/series": xarray.Dataset(series),
            "/sums": xarray.Dataset({n: (["chain", *dims(n, v)[1:]], v) for n, v in self.sums.items()}),
            "/fixed": xarray.Dataset(
                {"basis": (["input", "direction"], self.basis), "block": (["pattern"], self.block)}
            ),
            "/extra": xarray.Dataset({n: (dims(n, v), v) for n, v in self.extra.items()}),
        }
        tree = xarray.DataTree.from_dict(groups)
        tree.attrs.update(
            format=FORMAT,
            manifest=json.dumps(self.manifest),
            starts=json.dumps(self.starts),
            biased=int(self.biased),
            sha256=self.checksum(),
        )
        return tree

    def checksum(self) -> str:
        """sha256 over every array and the manifest, independent of the file format."""
        digest = hashlib.sha256(json.dumps([self.manifest, self.starts, self.biased], sort_keys=True).encode())
        fixed = {"basis": self.basis, "block": self.block}
        for group in (self.series, self.sums, fixed, self.extra):
            for name in sorted(group):
                value = np.ascontiguousarray(group[name])
                digest.update(f"{name} {value.shape} {value.dtype.str}".encode())
                digest.update(value.tobytes())
        return digest.hexdigest()

    def save(self, path: str | Path) -> Path:
        """Write one NetCDF file under a temporary name, flush it to disk, and rename it: a reader never sees half a file."""
        path = Path(path)
        # In memory first: HDF5 that meets a full disk crashes the whole process later, when its objects are freed; here it is OSError.
        whole = self.datatree().to_netcdf(engine="h5netcdf")
        with replacing(path) as temporary:
            temporary.write_bytes(whole)
        return path

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a file that `save` wrote.

        Raises InputError, naming the file and the mend, when it is missing, not such a file, or its checksum does not match.
        """
        import xarray

        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path}: there is no such run file")
        try:
            check_file(path)
            with xarray.open_datatree(path, engine="h5netcdf") as tree:
                tree = tree.load()
                groups = {
                    name: {str(key): np.asarray(value.values) for key, value in tree[name].data_vars.items()}
                    for name in ("series", "sums", "fixed", "extra")
                }
                attributes = dict(tree.attrs)
            run = cls(
                series=groups["series"],
                sums=groups["sums"],
                basis=groups["fixed"]["basis"],
                block=groups["fixed"]["block"],
                starts=json.loads(attributes["starts"]),
                manifest=json.loads(attributes["manifest"]),
                biased=bool(attributes["biased"]),
                extra=groups["extra"],
            )
            intact = run.checksum() == attributes["sha256"]
            if intact:
                check_run(run)
        except Exception as error:  # a hostile or damaged file can make the readers raise anything
            raise InputError(f"{path}: not a readable run file ({error}); delete it and sample again") from error
        if not intact:
            raise InputError(f"{path}: its checksum does not match its content; delete it and sample again")
        return run
