"""Lines of logs as the world writes them. The first pattern that nearly all values match is taken."""

from __future__ import annotations

from typing import NamedTuple


class LogKind(NamedTuple):
    what: str
    pattern: str
    schema: str
    #: Of the column `time`.
    time_format: str


LOGS = (
    LogKind(
        "access log of Apache or nginx",
        r'(?<client>\S+) \S+ (?<person>\S+) \[(?<time>[^\]]+)\] "(?<method>[A-Z]+) (?<path>\S+)[^"]*" (?<status>\d{3})'
        r' (?<size>\d+|-)(?: "(?<referrer>(?:[^"\\]|\\.)*)" "(?<agent>(?:[^"\\]|\\.)*)")?(?<rest>.*)',
        "time TIMESTAMP, status INT",
        "apache",
    ),
    LogKind(
        "error log of Apache",
        r"\[(?<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:.]+ \d{4})\] \[(?<level>[^\]]+)\] (?<line>.*)",
        "time TIMESTAMP",
        "apache_error",
    ),
    LogKind(
        "syslog",
        r"(?:<\d+>)?(?<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?<host>\S+) (?<process>[^\[:\s]+)"
        r"(?:\[(?<pid>\d+)\])?:? ?(?<line>.*)",
        "time TIMESTAMP, pid INT",
        "syslog",
    ),
    LogKind(
        "log of HDFS",
        r"(?<time>\d{6} \d{6}) (?<thread>\d+) (?<level>[A-Z]+) (?<component>[^:\s]+): (?<line>.*)",
        "time TIMESTAMP, thread INT",
        "hdfs",
    ),
    LogKind(
        "log of Log4j or of Python's logging",
        r"(?<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?:- )?(?<level>[A-Z]+)\s+(?<line>.*)",
        "time TIMESTAMP",
        "log4j",
    ),
    LogKind(
        "lines that begin with a time",
        r"\[?(?<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\]?:? (?<line>.*)",
        "time TIMESTAMP",
        "iso",
    ),
)
