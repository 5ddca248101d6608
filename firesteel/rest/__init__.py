"""What makes a running job reachable from outside: an HTTP server in its driver, and a note of where that is.

Standard library only. Paths and fields are those of Flink's REST API; docs/operating.md lists them.
"""
