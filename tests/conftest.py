"""For all tests: random ones print what reproduces them, and none fails because the machine is busy."""

from hypothesis import settings

settings.register_profile("firesteel", deadline=None, print_blob=True)
settings.load_profile("firesteel")
