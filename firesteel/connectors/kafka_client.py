"""The way to Kafka: finding the client libraries, and one set of properties for all of them.

confluent-kafka reads and writes, kafka-python ends transactions that other processes have left open, which confluent-kafka
cannot. Programs give properties as they would to Flink, by Kafka's own (Java) names; librdkafka, which confluent-kafka wraps,
takes most of them as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from firesteel.errors import ConfigurationError

Properties = Mapping[str, str]

_T = TypeVar("_T")

_JAVA_ONLY = re.compile(
    r"(key|value)\.(de)?serializer|interceptor\.classes|metric\.reporters|metrics\..*|partitioner\.class|max\.poll\.records"
    r"|partition\.assignment\.strategy|buffer\.memory|max\.block\.ms|default\.api\.timeout\.ms"
)
"""Properties that programs written for Flink have, and that mean nothing to a client in C."""

_JAVA_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
}
"""What librdkafka has under another name."""

_OUR_OWN = re.compile(r"partition\.discovery\.interval\.ms|commit\.offsets\.on\.checkpoint|client\.id\.prefix")
"""Flink's own properties of its Kafka source, read elsewhere."""

_STORES = re.compile(r"ssl\.truststore\..*|ssl\.keystore\.type")


def confluent_kafka() -> Any:
    """The library that reads and writes."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise _not_installed("confluent-kafka", error) from error
    return confluent_kafka


def kafka_python() -> Any:
    """The library that ends transactions."""
    try:
        import kafka
        import kafka.admin
    except ImportError as error:
        raise _not_installed("kafka-python", error) from error
    return kafka


def _not_installed(package: str, error: ImportError) -> ConfigurationError:
    return ConfigurationError(
        f"Kafka sources and sinks need {package}, which cannot be imported ({error}): pip install 'firesteel[kafka]'"
    )


def librdkafka_settings(properties: Properties) -> dict[str, Any]:
    """For a client of confluent-kafka."""
    settings: dict[str, Any] = {"log_level": 2}  # librdkafka writes to stderr; its errors come back to us anyway
    for key, value in properties.items():
        if key == "sasl.jaas.config":
            settings.update(_login(value))
        elif _STORES.fullmatch(key):
            raise ConfigurationError(
                f"the property {key!r} is about Java's key stores, which librdkafka cannot read: give PEM files with "
                f"ssl.ca.location, ssl.certificate.location and ssl.key.location"
            )
        elif not _JAVA_ONLY.fullmatch(key) and not _OUR_OWN.fullmatch(key):
            settings[_JAVA_NAMES.get(key, key)] = value
    return settings


_KAFKA_PYTHON = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}


def kafka_python_settings(properties: Properties) -> dict[str, Any]:
    """For a client of kafka-python: where the brokers are, and how to be let in."""
    given = librdkafka_settings(properties)
    settings = {ours: given[theirs] for theirs, ours in _KAFKA_PYTHON.items() if theirs in given}
    if "security_protocol" in settings:
        settings["security_protocol"] = settings["security_protocol"].upper()
    if given.get("ssl.endpoint.identification.algorithm") in ("", "none"):
        settings["ssl_check_hostname"] = False
    return {"bootstrap_servers": given["bootstrap.servers"].split(","), **settings}


def _login(jaas: str) -> dict[str, str]:
    """The user in Java's way to name one: `...LoginModule required username="u" password="p";`."""
    found = {name: re.search(rf'\b{name}\s*=\s*"((?:[^"\\]|\\.)*)"', jaas) for name in ("username", "password")}
    if not all(found.values()):
        raise ConfigurationError(
            "sasl.jaas.config does not name a username and a password: set sasl.username and sasl.password instead, or what "
            "the mechanism needs, as librdkafka's properties"
        )
    return {f"sasl.{name}": re.sub(r"\\(.)", r"\1", match[1]) for name, match in found.items() if match is not None}


def make(client: Callable[[dict[str, Any]], _T], settings: dict[str, Any]) -> _T:
    """A client of confluent-kafka; a property that it does not know is the program's mistake.

    :raises ConfigurationError: with the property's name.
    """
    try:
        return client(settings)
    except confluent_kafka().KafkaException as error:
        raise ConfigurationError(f"Kafka's client refuses its properties: {reason(error)}") from error


def complaint(error: Any) -> str:
    """What a client's own error says; empty for one that only sums up others, which say why."""
    summary = error.code() == confluent_kafka().KafkaError._ALL_BROKERS_DOWN
    return "" if summary else f"{error.name()}: {error.str()}"


def reason(error: BaseException) -> str:
    """What a client's exception says, without the wrapping."""
    inner: Any = error.args[0] if error.args else error
    text = inner.str() if callable(getattr(inner, "str", None)) else str(error)
    name = inner.name() if callable(getattr(inner, "name", None)) else type(error).__name__
    return f"{name}: {text}" if text else name
