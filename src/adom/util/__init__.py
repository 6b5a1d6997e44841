"""Helpers for every room: files, checked formats, threads, notebook cards."""
