"""The calls that users make for one run: `solve`, `solve_many`, `verify`, and the search of `parameters="tuned"`."""
