"""Worker processes: tasks in order of need, a worker that dies, a job that kills every worker."""

import sys

import pytest

from adom.paper.pool import Pool, Task

WORKER = """
import json, os, sys
from pathlib import Path
folder, deadly = Path(sys.argv[1]), json.loads(sys.argv[2])
for line in sys.stdin:
    task = json.loads(line)
    for number in task.get("jobs", []):
        print(json.dumps({"began": number}), flush=True)
        with (folder / "tried").open("a") as file:
            file.write(f"{number}\\n")
        times = (folder / "tried").read_text().split().count(str(number))
        if times <= deadly.get(str(number), 0):
            print("about to die", file=sys.stderr, flush=True)
            os.kill(os.getpid(), 9)
        print(json.dumps({"done": number}), flush=True)
    if "draw" in task:
        (folder / "drawn").write_text(task["draw"][0])
        if task["draw"][0] == "deadly":
            sys.exit(3)
    print(json.dumps({"idle": True}), flush=True)
"""


def run(folder, tasks, deadly="{}", workers=2):
    told = []
    with Pool(folder, workers, 1) as pool:
        pool.command = [sys.executable, "-c", WORKER, str(folder), deadly]
        pool.run(tasks, set(), told.append)
        processes = [worker.process for worker in pool.workers]
    assert all(process.poll() is not None for process in processes)
    return told, pool, (folder / "tried").read_text().split()


def test_tasks_wait_for_what_they_need(tmp_path):
    tasks = [Task([3, 4], needs={0, 2}), Task([0]), Task([1, 2]), Task(draw=("kappa", "unit"), needs={3, 4})]
    told, pool, tried = run(tmp_path, tasks)
    assert sorted(told) == [0, 1, 2, 3, 4]
    assert told.index(3) > max(told.index(0), told.index(2))
    assert (tmp_path / "drawn").read_text() == "kappa"
    assert not pool.lost
    assert sorted(tried) == list("01234")


def test_a_worker_that_dies_is_replaced_and_its_work_done(tmp_path):
    told, pool, tried = run(tmp_path, [Task([0, 1, 2]), Task([3, 4])], '{"1": 1}')
    assert sorted(told) == [0, 1, 2, 3, 4]
    assert not pool.lost
    assert sorted(tried) == ["0", "1", "1", "2", "3", "4"]


def test_a_job_that_kills_its_worker_twice_is_given_up_and_the_rest_done(tmp_path):
    tasks = [Task([0, 1, 2]), Task([3], needs={1}), Task([4])]
    told, pool, tried = run(tmp_path, tasks, '{"1": 9}')
    assert sorted(told) == [0, 2, 3, 4]
    assert pool.lost == {1: "signal 9; about to die"}
    assert tried.count("1") == 2


def test_a_worker_that_dies_while_drawing_is_an_error(tmp_path):
    (tmp_path / "tried").touch()
    with pytest.raises(RuntimeError, match=r"died while drawing \('deadly', 'unit'\): exit code 3"):
        run(tmp_path, [Task(draw=("deadly", "unit"))])


def test_a_worker_has_one_thread_unless_it_has_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/nowhere")
    one, many = (Pool(tmp_path, 1, batch)._environment() for batch in (1, 16))
    assert (one["OMP_NUM_THREADS"], one["NPROC"]) == ("1", "1")
    assert one["XLA_FLAGS"] == "--xla_dump_to=/nowhere --xla_cpu_multi_thread_eigen=false"
    assert many["XLA_FLAGS"] == "--xla_dump_to=/nowhere"
