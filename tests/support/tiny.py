"""A reproduction so small that a test can run it."""

from adom.paper.panels import Size
from adom.paper.plan import Scale

SIZE = Size(
    nodes=6,
    graphs=4,
    slow=6,
    samples=6,
    real=4,
    dims={40: 4, 60: 5, 80: 6, 100: 7},
    chis={9.0: 4.0, 30.0: 5.0, 32.0: 5.0, 134.0: 6.0, 400.0: 6.0, 521.0: 7.0},
)
TINY = Scale(
    SIZE,
    seeds=1,
    times={"theory": 7.0, "unit": 5.0, "tuned": 3.0, "auto": 1.0},
    most={"theory": 120, "unit": 120, "tuned": 80, "auto": 200},
    least=60,
    small=60,
    records=20,
    stages=((4, 4.0),),
    search=60,
    exact=20,
    verified=8,
    oracles=0,
    found=1,
    searched={"kappa": 0, "chi": 0},
)
