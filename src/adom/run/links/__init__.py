"""Imperfect links: what they do to messages, who is present, and the ledgers that repair a method's state."""
