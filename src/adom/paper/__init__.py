"""Many runs with one question: sweeps over settings, and the search for a method's best parameters."""
