"""The only package that speaks PySpark: sessions, the job source, the host of shards, one query an attempt."""
