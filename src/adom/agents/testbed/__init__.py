"""A test-bed for agents: many on one machine, with faults. Agents themselves know nothing of it."""
