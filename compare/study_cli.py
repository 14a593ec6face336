"""What `verify` does with --subsets and --controls, and `report` with a folder that it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compare import controls, options
from compare.command import emit
from data.errors import InputError

DEFAULT_P = options.DEFAULT_P
LOAD = ("classes", "labels", "label_seed", "balanced", "standardise", "P_test")


def verify(values: dict[str, Any], sampling: dict[str, Any], progress: Any) -> Any:
    """The Study that the flags ask for. `sampling` as for `compare.verify`; `progress` a compare.terminal.Progress."""
    from compare.verify_subsets import verify_subsets

    listed, how = problems(values)
    names = [] if values["controls"] is None else controls.names(values["controls"])
    runs = len(listed) * (len(names) + 1)
    cells = sum(len(one) for one in listed)
    told = f"{cells} cells on {len(listed)} subset{'s' if len(listed) > 1 else ''}"
    told += f", and {', '.join(names)} on each" if names else ""
    if sampling["budget_seconds"] is not None:
        told += f"; sampling takes at most {sampling['budget_seconds']:g} s a cell after warm-up"
    progress.say(f"{told}; {runs} report{'s' if runs > 1 else ''}")
    return verify_subsets(
        listed,
        controls=names,
        how=how,
        margin=values["margin"],
        first_order=values["first_order"],
        out=values["out"],
        stage=progress.stage,
        **sampling,
    )


def problems(values: dict[str, Any]) -> tuple[list[list[Any]], str]:
    """(problems of each subset, how they were chosen); one subset is the data set as without --subsets, in file order or by its seed."""
    from data.subsets import subsets

    count = 1 if values["subsets"] is None else int(values["subsets"])
    if count < 1 or count == 2:
        raise InputError(f"--subsets {count}: a spread between subsets needs three or more")
    temperatures = options.temperatures(values["T"], values["T_points"])
    options.widths(values["N1"], values["alpha"], 100)
    load = {key: values[key] for key in LOAD}
    P, how = values["P"], ""
    if count == 1:
        datasets = [options.load_dataset(values["data"], P=P, subset_seed=values["subset_seed"], **load)]
    else:
        if P is None and options.is_file(values["data"]):
            raise InputError("--subsets of a file: say with --P how many patterns each has")
        if P is not None and P < 2:
            raise InputError(f"--P {P}: at least 2 patterns, one of each class, are needed")
        P = DEFAULT_P if P is None else P
        datasets, how = subsets(values["data"], count, seed=values["subset_seed"], P=P, **load)
    widths = options.widths(values["N1"], values["alpha"], datasets[0].P)
    network = {key: values[key] for key in ("lambda0", "lambda1", "activation")}
    return [options.problems(dataset, widths, temperatures, **network) for dataset in datasets], how


def report(folder: Path, progress: Any) -> Any:
    """The Study of a folder, computed anew from its runs and written again; None where the folder holds no study."""
    from compare.verify_subsets import is_study, reread_subsets

    if not is_study(folder):
        return None
    study = reread_subsets(folder, stage=progress.stage)
    study.write(folder)
    return study


def finish(study: Any, page: Path, json: bool, quiet: bool) -> bool:
    """Print a study; returns whether every run may be used (exit status 3 where not)."""
    if json:
        emit(study.to_dict())
    else:
        if not quiet:
            from compare.report.study_tables import shown
            from compare.terminal import print_table

            tables = shown(study)
            for name in ("levels", "budget", "weights", "peaks", "answers"):
                if name in tables:
                    print_table(tables[name])
        print(study.sentence)
        print(f"Report: {page}")
    return bool(study.converged)
