"""Text from a socket."""

from firesteel.connectors.socket_source import SocketSource

__all__ = ["SocketSource"]
