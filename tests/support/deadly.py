"""Work for a `Runner` that kills its process, or fails, when a file says so."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from adom.paper.runner import WorkUnit


def do(unit: WorkUnit, folder: Path, stages: Any, batch: int) -> None:
    """Note the attempt; die, fail or leave the job's file, as deadly.json says of its seed."""
    deadly = json.loads((folder / "deadly.json").read_text())
    for job in unit.jobs:
        with (folder / "tried").open("a") as file:
            file.write(f"{job.seed} {os.environ.get('NPROC')}\n")
        tries = [line.split()[0] for line in (folder / "tried").read_text().splitlines()].count(str(job.seed))
        fate = deadly.get(str(job.seed), 0)
        if fate == "fail":
            raise ValueError("no such luck")
        if tries <= fate:
            print("about to die", file=sys.stderr, flush=True)
            os.kill(os.getpid(), 9)
        (folder / "results" / f"{job.key}.json").write_text("{}")
    if unit.page is not None:
        if unit.page[0] == "deadly":
            os._exit(3)
        (folder / "drawn").write_text(unit.page[0])
