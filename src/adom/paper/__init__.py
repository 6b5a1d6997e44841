"""The paper's experiments: every panel as data, its runs, and the verdicts on the claims."""
