"""`python -m firesteel` is the command `firesteel`."""

from firesteel.cli.main import entry

if __name__ == "__main__":
    entry()
