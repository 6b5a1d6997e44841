"""Helpers for all subpackages: files, checked formats, threads, notebook cards."""
