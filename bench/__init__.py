"""The benchmark: `python -m bench` (see bench/__main__.py). Every measured thing is a program of its own in here."""
