from firesteel.errors import FiresteelError


def dispose(path: str) -> None:
    raise FiresteelError("savepoints are not supported in this version")
