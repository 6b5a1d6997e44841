"""Jobs of a `Runner` that kill their process, or fail, when a file says so."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Numbered:
    """A job that is known by its number."""

    number: int

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"job-{self.number}"


def do(job: Numbered, folder: Path) -> None:
    """Note the attempt; die, fail or leave the job's file, as deadly.json says of its number."""
    deadly = json.loads((folder / "deadly.json").read_text())
    with (folder / "tried").open("a") as file:
        file.write(f"{job.number} {os.environ.get('NPROC')}\n")
    tries = [line.split()[0] for line in (folder / "tried").read_text().splitlines()].count(str(job.number))
    fate = deadly.get(str(job.number), 0)
    if fate == "fail":
        raise ValueError("no such luck")
    if tries <= fate:
        print("about to die", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    (folder / "results" / f"{job.key}.json").write_text("{}")


def draw(page: str, folder: Path) -> None:
    """Draw a page, or die."""
    if page == "deadly":
        os._exit(3)
    (folder / "drawn").write_text(page)
