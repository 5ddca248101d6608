"""Dates written by the patterns of Java's DateTimeFormatter, such as `yyyy-MM-dd--HH`."""

from __future__ import annotations

import datetime
import re
import zoneinfo

from firesteel.errors import ConfigurationError

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|'")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LETTERS = "yuMLdDHhkmsSaE"


class DatePattern:
    """A pattern cut into pieces: (letter, count) for a field, ("", text) for text that stands for itself."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._pieces = self._parse()

    def _parse(self) -> list[tuple[str, int | str]]:
        pieces: list[tuple[str, int | str]] = []
        for match in _TOKEN.finditer(self.pattern):
            text, letter, token = match[1], match[2], match[0]
            if text is not None:
                pieces.append(("", text.replace("''", "'") if text else "'"))
            elif letter is not None:
                if letter not in _LETTERS:
                    raise ConfigurationError(
                        f"the date pattern {self.pattern!r} has the letter {letter!r}; those there are: "
                        f"{', '.join(_LETTERS)}. Text belongs between single quotes"
                    )
                pieces.append((letter, len(token)))
            elif token == "'":
                raise ConfigurationError(f"the date pattern {self.pattern!r} has a quote that does not end")
            else:
                pieces.append(("", token))
        return pieces

    def format(self, moment: datetime.datetime) -> str:
        return "".join(what if isinstance(what, str) else _field(letter, what, moment) for letter, what in self._pieces)


def _field(letter: str, count: int, moment: datetime.datetime) -> str:
    if letter == "S":
        return f"{moment.microsecond:06d}".ljust(count, "0")[:count]
    if letter == "a":
        return "AM" if moment.hour < 12 else "PM"
    if letter == "E":
        name = _DAYS[moment.weekday()]
        return name if count > 3 else name[:3]
    if letter in "ML" and count > 2:
        name = _MONTHS[moment.month - 1]
        return name if count > 3 else name[:3]
    if letter in "yu" and count == 2:
        return f"{moment.year % 100:02d}"
    number = {
        "y": moment.year, "u": moment.year, "M": moment.month, "L": moment.month, "d": moment.day, "m": moment.minute,
        "D": moment.timetuple().tm_yday, "H": moment.hour, "h": moment.hour % 12 or 12, "k": moment.hour or 24,
        "s": moment.second,
    }[letter]  # fmt: skip
    return str(number).rjust(count, "0")


def time_zone(name: str | None) -> datetime.tzinfo | None:
    """The zone of an id as Java knows them: "Europe/Berlin", "Z", "+02:00", "GMT-8". None: the machine's own."""
    if name is None:
        return None
    if name in ("Z", "UTC", "GMT", "UT"):
        return datetime.timezone.utc
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        if minutes <= 18 * 60:
            return datetime.timezone(datetime.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"{name!r} is no time zone; give a name such as 'America/Los_Angeles' or an offset such as 'GMT-08:00'"
        ) from error
