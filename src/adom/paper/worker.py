"""One worker process of a reproduction: it reads tasks from stdin, line by line, and says on stdout what it has done.

A task is a JSON object: ``{"jobs": [numbers]}``, places in the plan of the folder, or ``{"draw": [figure, protocol]}``.
An answer is ``{"began": number}``, ``{"done": number}``, or ``{"idle": true}`` after the last of a task. When stdin
ends, because there is no more to do or because the reproduction was killed, so does the worker, in the middle of a job
if it has to: a file is whole or not there.
"""

import itertools
import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

FORGET = 20
"""Tasks after which compiled programs are let go: those to come have other shapes, and memory would fill up."""


def main(folder: Path, batch: int) -> None:
    """Work off tasks until stdin ends."""
    tasks: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()

    import jax

    from .runs import load_plan
    from .work import Workshop

    plan = load_plan(folder)
    workshop = Workshop(folder, plan.stages, batch)
    for count in itertools.count(1):
        task = tasks.get()
        for number in task.get("jobs", ()):
            _say({"began": number})
            workshop.do(plan.jobs[number])
            _say({"done": number})
        if "draw" in task:
            from .pages import draw

            draw(folder, *task["draw"])
        if count % FORGET == 0:
            jax.clear_caches()
        _say({"idle": True})


def _listen(tasks: "queue.Queue[dict[str, Any]]") -> None:
    for line in sys.stdin:
        tasks.put(json.loads(line))
    os._exit(0)


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
