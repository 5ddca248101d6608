"""State in RocksDB: on local disk, larger than memory, with the hot part as Python objects in front of it.

The only home of rocksdict, which is an optional package: nothing outside imports this before a job asks for it.
"""
