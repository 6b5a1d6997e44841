"""The loop of stages: the costs of its runs added up."""

import numpy as np

from adom.run.stages import StageCosts
from adom.util.columns import ADDING


def test_counts_go_on_from_run_to_run_unless_the_run_went_on_itself():
    run = {name: np.array([0, 3]) for name in ADDING} | {"error": np.array([1.0, 0.1])}
    costs = StageCosts()
    costs.add(run)
    costs.spent["round"] += 5  # averaging between two runs
    costs.add({**run, "floats_sent": np.array([4, 9])}, ["floats_sent"])
    found = costs.history
    assert found["stage"].tolist() == [1, 1, 2, 2]
    assert found["round"].tolist() == [0, 3, 8, 11]
    assert found["floats_sent"].tolist() == [0, 3, 4, 9]
    assert found["iteration"].tolist() == found["gradients"].tolist() == [0, 3, 3, 6]
    assert found["error"].tolist() == [1.0, 0.1, 1.0, 0.1]
    assert found["round"].dtype.kind == "i"
