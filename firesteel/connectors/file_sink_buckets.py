"""Which directory below the file sink's base path a record goes to."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from firesteel.connectors.file_sink_dates import DatePattern, time_zone
from firesteel.errors import ConfigurationError

_NO_WATERMARK = -(2**63)


class BucketAssigner(ABC):
    """Subclass it for buckets of your own. Pickled to slots."""

    depends_on_element: bool = True
    """If not, it is asked once for every batch of records, and given None in the place of a record."""

    class Context:
        """What is known beside the record. A sink is given records without their timestamps."""

        def __init__(self, now: Callable[[], int]) -> None:
            self._now = now

        def current_processing_time(self) -> int:
            return self._now()

        def current_watermark(self) -> int:
            return _NO_WATERMARK

        def timestamp(self) -> int | None:
            return None

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        """The record's bucket: a path below the base path, such as "city=Oslo/day=12". "" is the base path itself."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """All files in the base path. The default here."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """A directory for every hour, or whatever the pattern tells apart, by the time at which a record is written.

        :param format_str: a pattern of Java's DateTimeFormatter.
        :param timezone_id: such as "America/Los_Angeles" or "GMT-08:00"; None: the time zone of the machine.
        """
        return DateTimeBucketAssigner(format_str, timezone_id)


class BasePathBucketAssigner(BucketAssigner):
    """No buckets."""

    depends_on_element = False

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        return ""


class DateTimeBucketAssigner(BucketAssigner):
    """Buckets by processing time."""

    depends_on_element = False

    def __init__(self, format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> None:
        self._pattern = DatePattern(format_str)
        self._zone = time_zone(timezone_id)
        check_bucket(self._pattern.format(datetime.datetime(2000, 1, 1)))

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        return self._pattern.format(
            datetime.datetime.fromtimestamp(context.current_processing_time() / 1000, self._zone)
        )


def check_bucket(bucket: Any) -> str:
    """
    :raises ConfigurationError: no path below another one.
    """
    if not isinstance(bucket, str):
        raise ConfigurationError(f"a bucket id must be a str, but is {bucket!r:.200}")
    if bucket and (
        "\0" in bucket or any(part in ("", ".", "..") or part.startswith(".") for part in bucket.split("/"))
    ):
        raise ConfigurationError(
            f"{bucket!r:.200} cannot be a bucket: it must be a path below the base path, without empty parts, '..' and "
            f"parts that start with '.'"
        )
    return bucket
