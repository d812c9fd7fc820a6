"""Databases as sinks, sources and look-ups: PostgreSQL, and MySQL as far as the same code serves."""

from headrace.connectors.databases.lookup import PostgresLookup
from headrace.connectors.databases.mysql_lookup import MySqlLookup
from headrace.connectors.databases.sink import MySqlSink, PostgresSink
from headrace.connectors.databases.source import MySqlSource, PostgresSource

__all__ = [
    "MySqlLookup",
    "MySqlSink",
    "MySqlSource",
    "PostgresLookup",
    "PostgresSink",
    "PostgresSource",
]
