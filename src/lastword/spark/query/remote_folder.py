"""A folder behind a URL (s3a://, hdfs://, abfss://), through Hadoop's file systems as Spark itself uses them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lastword.spark.query.export_folder import MARKER, refuse_what_is_there
from lastword.spark.session.pyspark_private import jvm_of, session_state


class RemoteFolder:
    def __init__(self, spark: SparkSession, url: str) -> None:
        self._url = url
        self._path: Any = jvm_of(spark).org.apache.hadoop.fs.Path
        self._root = self._path(url)
        self._files: Any = self._root.getFileSystem(session_state(spark).newHadoopConf())

    def names(self) -> list[str]:
        """The names in the folder; empty if there is no folder."""
        if not self._files.exists(self._root):
            return []
        return sorted(str(status.getPath().getName()) for status in self._files.listStatus(self._root))

    def clear_for_export(self, *, overwrite: bool) -> None:
        """Refuses what may not be overwritten, and deletes the old manifest: a half export must have none."""
        refuse_what_is_there(self._url, self.names(), overwrite=overwrite)
        self._files.delete(self._path(self._root, MARKER), False)

    def write(self, name: str, content: bytes) -> None:
        file = self._files.create(self._path(self._root, name), True)
        try:
            file.write(bytearray(content))
        finally:
            file.close()
