"""Configuration files: their settings as text, each with the line it comes from.

Three formats. `firesteel.yaml` and Flink's `config.yaml` are YAML, whose mappings are nested or have dots in their keys,
as one likes. Flink's older `flink-conf.yaml` only looks like YAML: each line is a key, a colon, a space and a value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from firesteel.common.config_options import to_text
from firesteel.errors import ConfigurationError

OURS = "firesteel.yaml"
FLINKS = "config.yaml"
FLINKS_OLDER = "flink-conf.yaml"

_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"


@dataclass(frozen=True)
class Setting:
    """A value, and where it was set."""

    value: str
    source: str


@dataclass(frozen=True)
class ConfigFile:
    """The one file that counts."""

    path: str
    flinks: bool

    def settings(self) -> dict[str, Setting]:
        """
        :raises ConfigurationError: it cannot be read, or is not what its name says; with the line.
        """
        try:
            with open(self.path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else f"it is not UTF-8: {error}"
            raise ConfigurationError(f"{self.path} cannot be read: {reason}") from None
        if os.path.basename(self.path) == FLINKS_OLDER:
            return dict(_lines(text, self.path))
        return _yaml(text, self.path, skip_empty=self.flinks)


def find_config_file(environ: Mapping[str, str], directory: str) -> ConfigFile | None:
    """The first there is of: `firesteel.yaml` in $FIRESTEEL_CONF_DIR, in `directory`, in ~/.config/firesteel; Flink's
    `config.yaml`, else its `flink-conf.yaml`, in $FLINK_CONF_DIR.

    :raises ConfigurationError: $FIRESTEEL_CONF_DIR is set, and there is none in it.
    """
    given = environ.get("FIRESTEEL_CONF_DIR")
    if given:
        path = os.path.join(given, OURS)
        if not os.path.exists(path):
            raise ConfigurationError(f"FIRESTEEL_CONF_DIR is {given}, but there is no {OURS} in it")
        return ConfigFile(path, flinks=False)
    home = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    for path in (os.path.join(directory, OURS), os.path.join(home, "firesteel", OURS)):
        if os.path.exists(path):
            return ConfigFile(path, flinks=False)
    flinks = environ.get("FLINK_CONF_DIR")
    for name in (FLINKS, FLINKS_OLDER):
        if flinks and os.path.exists(path := os.path.join(flinks, name)):
            return ConfigFile(path, flinks=True)
    return None


def _lines(text: str, path: str) -> Iterator[tuple[str, Setting]]:
    """As Flink 1.x read them: what is no setting is passed over, and everything after a # is a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        key, colon, value = line.partition("#")[0].partition(": ")
        if colon and key.strip() and value.strip():
            yield key.strip(), Setting(_unquoted(value.strip()), f"{path}, line {number}")


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _yaml(text: str, path: str, *, skip_empty: bool) -> dict[str, Setting]:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None or root.tag == _NULL:
            return {}
        if not isinstance(root, yaml.MappingNode):
            raise ConfigurationError(f"{path}, line {root.start_mark.line + 1}: settings are written as `key: value`")
        reader = _Reader(loader, path, skip_empty)
        reader.mapping(root, "")
        return reader.found
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(f"{path}{where}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: not YAML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: not a configuration: it contains itself") from None
    finally:
        loader.dispose()


class _Reader:
    """Goes through nodes and not through what they stand for: nodes have lines, and `1:30` is not 90 to us."""

    def __init__(self, loader: yaml.SafeLoader, path: str, skip_empty: bool) -> None:
        self._loader, self._path, self._skip_empty = loader, path, skip_empty
        self.found: dict[str, Setting] = {}

    def mapping(self, node: yaml.MappingNode, prefix: str) -> None:
        self._loader.flatten_mapping(node)
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigurationError(f"{self._at(key)}: a key is a text")
            name = f"{prefix}.{key.value}" if prefix else key.value
            if isinstance(value, yaml.MappingNode):
                self.mapping(value, name)
            else:
                self._setting(name, key, value)

    def _setting(self, name: str, key: yaml.Node, value: yaml.Node) -> None:
        if name in self.found:
            raise ConfigurationError(f"{self._at(key)}: {name} is set again, after {self.found[name].source}")
        if value.tag == _NULL:
            if not self._skip_empty:
                raise ConfigurationError(f"{self._at(key)}: {name} has no value")
            return
        if isinstance(value, yaml.SequenceNode):
            text = ";".join(self._text(name, item) for item in value.value)
        else:
            text = self._text(name, value)
        self.found[name] = Setting(text, self._at(key))

    def _text(self, name: str, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise ConfigurationError(f"{self._at(node)}: the value of {name} is a text or a list of texts")
        if node.tag == _BOOL:
            return to_text(self._loader.construct_yaml_bool(node))
        return str(node.value)

    def _at(self, node: yaml.Node) -> str:
        return f"{self._path}, line {node.start_mark.line + 1}"
