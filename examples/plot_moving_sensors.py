"""
Sensors in motion
=================

Sensors drift about, each with a poor idea of where a beacon is, and talk to whoever is
near. Together they find it; nobody collects the measurements. The pictures show who is
linked to whom, and how far each sensor is from the answer.
"""

# %%
# Forty sensors walk from one random point to the next (the random waypoint model), in
# every round a little further. Where they fall apart, the shortest links join them.

import numpy as np

import adom

nodes, rounds = 40, 110
network = adom.networks.waypoint(
    nodes, radius=0.28, graphs=rounds, speed=0.03, seed=4, repair=True
)
network.plot([0, 10, 20]).show()

# %%
# Each sensor has measured the beacon once, some well and some badly, so that ``f_i(x) =
# |x - measured_i|^2 / (2 noise_i^2)``. The minimiser of the sum is the most likely
# place.

generator = np.random.default_rng(0)
beacon = np.array([0.7, 0.4])
noise = generator.uniform(0.1, 0.4, nodes)[:, None]
measured = beacon + noise * generator.standard_normal((nodes, 2))
problem = adom.Quadratic(np.eye(2) / noise[:, :, None] ** 2, measured / noise**2)
problem

# %%
# After 110 rounds all of them know it.

result = adom.solve(problem, network, parameters="unit", rounds=rounds)
before, after = (
    np.linalg.norm(where - beacon, axis=1).max() for where in (measured, result.x)
)
print(f"the worst sensor was off by {before:.2f}, and is now by {after:.2f}")
result

# %%
# ``adom.replay`` goes through the run again and looks at every node. Bright sensors are
# far from the answer, dark ones near. At first all are equally ignorant; then each goes
# by its own measurement, and the links even that out.

# sphinx_gallery_thumbnail_number = 2
seen = adom.replay(result, problem, network)
frames = [0, 2, 10, 30, 60, 100]
network.plot(
    seen.rounds[frames], values=seen.distances[frames], label="distance to the solution"
).show()

# %%
# The same as a film. ``film.save("sensors.gif")`` writes it.

film = network.animate(
    seen.rounds[:60:3], seen.distances[:60:3], label="distance to the solution"
)
film
