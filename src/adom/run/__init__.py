"""The only loop: it runs methods on problems over networks, and keeps the books."""
