"""Running agents over Zenoh, each in a thread: how they are started, waited for and read."""

import io
import json
import os
import sys
import threading
import time
from pathlib import Path

import adom
from adom.agents.configuration import make_config
from adom.agents.service import Service
from adom.errors import InputError

PATIENCE = 60
"""Seconds after which a test gives up."""


def make_service(given, neighbours):
    return Service(make_config(given, neighbours), io.StringIO())


def start(made):
    """Run services in threads; return the threads, and by name how each ended, once it has."""
    endings = {}

    def run(service):
        try:
            endings[service.config.name] = service.run()
        except InputError as error:
            endings[service.config.name] = str(error)

    threads = [threading.Thread(target=run, args=(service,), daemon=True) for service in made]
    for thread in threads:
        thread.start()
    return threads, endings


def run_all(made):
    """Run services to their ends; return these by name."""
    threads, endings = start(made)
    for thread in threads:
        thread.join(2 * PATIENCE)
    return endings


def stop(made, threads):
    for each in made:
        each.ask_to_stop("asked to")
    for thread in threads:
        thread.join(PATIENCE)


def told(service, event):
    """Return the lines of a service's log about one event."""
    return [line for line in map(json.loads, service._log.getvalue().splitlines()) if line["event"] == event]


def process_of(file, *words):
    """Return the call of an agent as a process, and its environment."""
    own = {"PYTHONPATH": str(Path(adom.__file__).parents[1]), "PYTHONUNBUFFERED": ""}
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return [sys.executable, "-m", "adom", "agent", str(file), *words], {**os.environ, **own, **one_thread}


def wait_for(what):
    end = time.monotonic() + PATIENCE
    while not (met := what()) and time.monotonic() < end:
        time.sleep(0.02)
    assert met
