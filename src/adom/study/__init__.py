"""Many runs: comparisons, sweeps, tuned parameters, and replaying a run."""
