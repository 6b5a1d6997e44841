"""Figures of results and networks; they read results and never run anything."""
