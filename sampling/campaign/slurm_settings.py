"""What a spec may say about Slurm: the resources of each class of cell, every word checked before it can reach a script."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

# A spec is data that may come from somebody else. What it says ends up in `#SBATCH` lines, so each word is held to the characters
# that Slurm's own names need; whatever else a site wants (modules, mail, odd options) is written into slurm.sh by the user.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=64)]
Names = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.,-]*$", max_length=256)]
Constraint = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_\[(][A-Za-z0-9_.&|\[\]()*-]*$", max_length=256)]
Memory = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,6}[KMGT]?$")]
Time = Annotated[str, StringConstraints(pattern=r"^([0-9]{1,3}-)?[0-9]{1,3}:[0-5][0-9]:[0-5][0-9]$")]

MINUTE, DAY = 60, 86400
LEAD = 30  # at least so many seconds of work between a job's start and its warning


def seconds_of(time: str) -> int:
    """Seconds of Slurm's `[days-]hours:minutes:seconds`."""
    days, _, clock = time.rpartition("-")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return int(days or 0) * DAY + hours * 3600 + minutes * 60 + seconds


class Resources(BaseModel):
    """What one job of a class of cell asks for. A field left out is not asked for, and the site's default holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    partition: Names | None = None
    account: Name | None = None
    qos: Name | None = None
    constraint: Constraint | None = None
    time: Time | None = Field(
        default=None, description="[days-]hours:minutes:seconds that a job may take, its restarts counted anew"
    )
    cpus: Annotated[int, Field(ge=1, le=1024)] | None = None
    memory: Memory | None = Field(default=None, description="memory of the job, such as 4G")
    gpus: Annotated[int, Field(ge=0, le=64)] | None = None
    gpu_type: Name | None = None

    @field_validator("time")
    @classmethod
    def _long_enough(cls, time: str | None) -> str | None:
        if time is not None and seconds_of(time) < MINUTE:
            raise ValueError("Slurm counts time limits in minutes: at least 00:01:00")
        return time

    def over(self, base: Resources) -> Resources:
        """`base` with what is said here put over it."""
        return base.model_copy(update=self.model_dump(exclude_none=True, include=set(Resources.model_fields)))

    def directives(self) -> list[str]:
        """The `#SBATCH` lines, in a fixed order."""
        gpu = None if not self.gpus else f"gpu:{self.gpu_type}:{self.gpus}" if self.gpu_type else f"gpu:{self.gpus}"
        options = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
            "time": self.time,
            "cpus-per-task": self.cpus,
            "mem": self.memory,
            "gres": gpu,
        }
        return [f"#SBATCH --{name}={_checked(str(value))}" for name, value in options.items() if value is not None]


class SlurmSettings(Resources):
    """The `slurm` table of a spec: resources for all cells, then what differs for a class of cell under `class`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    cells_per_job: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="cells that one array element does in turn; by default as many as job_seconds holds"
    )
    job_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=3600.0, description="expected work of one array element"
    )
    grace_seconds: Annotated[int, Field(ge=5, le=3600)] = Field(
        default=120,
        description="seconds before the time limit at which a job is told to write its checkpoint and be requeued",
    )
    max_requeues: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=100, description="restarts of one array element at most"
    )
    at_once: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="array elements that may run at the same time"
    )
    max_queued: Annotated[int, Field(ge=1)] = Field(
        default=10_000, description="array elements of this campaign in the queue at most"
    )
    classes: dict[Name, Resources] = Field(default_factory=dict, alias="class")

    @model_validator(mode="after")
    def _grace_shorter_than_every_limit(self) -> SlurmSettings:
        for name, asked in {
            "slurm": self,
            **{f"slurm.class.{key}": value for key, value in self.classes.items()},
        }.items():
            if asked.time is not None and seconds_of(asked.time) < self.grace_seconds + LEAD:
                raise ValueError(
                    f"{name}.time = {asked.time} leaves less than {LEAD} s of work before the warning that comes "
                    f"grace_seconds = {self.grace_seconds} before the limit"
                )
        return self

    def resources(self, cell_class: str) -> Resources:
        """What a job of this class of cell asks for."""
        base = Resources(**self.model_dump(include=set(Resources.model_fields)))
        special = self.classes.get(cell_class)
        return base if special is None else special.over(base)


def _checked(word: str) -> str:
    """The last gate before a script: nothing with a blank, a quote or a shell character leaves, whatever was validated above."""
    if not re.fullmatch(r"[A-Za-z0-9_.,:&|\[\]()*-]+", word):
        raise ValueError(f"{word!r} cannot stand in an #SBATCH line")
    return word
