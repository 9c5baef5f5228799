"""A table at a position as files, written by Spark, with the position beside them.

`_lastword.json` in the folder says what was exported. It is written last: a folder without it is no whole export.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lastword.core.codecs import codec_named
from lastword.core.durable import sync, write_durably
from lastword.core.errors import BadInput
from lastword.core.record import Headers, Record
from lastword.core.row_json import row_json
from lastword.core.shapes.json_text import json_text
from lastword.core.shapes.rows import SentRow
from lastword.kafka.client.live_settings import topic_identity
from lastword.spark.query.export_folder import MARKER, export_folder, names_in, refuse_what_is_there
from lastword.spark.query.remote_folder import RemoteFolder
from lastword.spark.query.rows_as_text import FOR_PROGRAMS, flat
from lastword.spark.reading.offset_range import At, OffsetRange, captured_range
from lastword.spark.reading.table import table_of
from lastword.spark.session.failures import one_line_failures
from lastword.spark.session.session import connection_of

if TYPE_CHECKING:
    import pyarrow

FORMATS = ("parquet", "delta", "csv", "jsonl")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*")
_WRITER_OPTIONS: Mapping[str, Mapping[str, str]] = {
    # RFC 4180: a quote inside quotes is doubled; space belongs to the value.
    "csv": {
        "header": "true",
        "escape": '"',
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    },
    "delta": {"overwriteSchema": "true"},
}


@dataclass(frozen=True, kw_only=True)
class Exporting:
    """The table of a topic to export, at a position or moment, and its form: columns or raw values."""

    topic: str
    format: str
    at: At = None
    key: str = "string"
    value: str = "json"
    columns: bool = True
    schema: str | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise BadInput(f"no format {self.format!r}: choose one of {', '.join(FORMATS)}")
        if self.schema is not None and not self.has_columns:
            raise BadInput(
                "--schema is for columns of JSON values: leave it out for JSON lines, --raw and other codecs"
            )

    @property
    def has_columns(self) -> bool:
        return self.columns and self.format != "jsonl" and codec_named(self.value).name == "json"


class ExportSource(Struct, frozen=True, kw_only=True):
    """What is exported, without the counts of rows. A commit of a Delta table has this as its `userMetadata`."""

    topic: str
    topic_id: str
    cluster: str
    position: str
    exported_at: str
    key_codec: str
    value_codec: str
    format: str


class Exported(ExportSource, frozen=True, kw_only=True):
    """The export's manifest, `_lastword.json`. `unreadable` counts the rows with a `decode_error`."""

    rows: int
    unreadable: int


def export_table(spark: SparkSession, path: str, exporting: Exporting, *, overwrite: bool = False) -> Exported:
    """Writes the table to a folder, local or by URL, and returns its manifest once all files are there."""
    offset_range = captured_range(connection_of(spark), exporting.topic, exporting.at)
    work, folder = _OneExport(spark, exporting, offset_range), _local(path)
    if folder is None:
        return work.to_url(path, overwrite=overwrite)
    if overwrite and _is_next_commit(folder, exporting.format):
        return work.to_delta(folder)
    return work.to_folder(folder, overwrite=overwrite)


def refuse_occupied(path: str, form: str, *, overwrite: bool) -> None:
    """AlreadyExists or BadInput for a local folder that this export could not be written to."""
    folder = _local(path)
    if folder is not None and not (overwrite and _is_next_commit(folder, form)):
        refuse_what_is_there(folder, names_in(folder), overwrite=overwrite)


def _local(path: str) -> Path | None:
    """The folder on local disk; None for a URL."""
    if _URL.fullmatch(path) and not path.startswith("file://"):
        return None
    return Path(path.removeprefix("file://")).expanduser().resolve()


def _is_next_commit(folder: Path, form: str) -> bool:
    return form == "delta" and (folder / "_delta_log").is_dir()


class _OneExport:
    """One export."""

    def __init__(self, spark: SparkSession, exporting: Exporting, offset_range: OffsetRange) -> None:
        self._spark = spark
        self._exporting = exporting
        connection = connection_of(spark)
        admin = connection.admin()
        self._source = ExportSource(
            topic=exporting.topic,
            topic_id=topic_identity(admin, exporting.topic),
            cluster=str(connection.reach(admin).cluster_id),
            position=str(offset_range.stop),
            exported_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            key_codec=codec_named(exporting.key).name,
            value_codec=codec_named(exporting.value).name,
            format=exporting.format,
        )
        self._offset_range = offset_range

    def to_folder(self, folder: Path, *, overwrite: bool) -> Exported:
        """Writes beside the folder, then renames: an old export is unchanged until the new one is whole."""
        with export_folder(folder, overwrite=overwrite) as place:
            done = self._write(place.unfinished.as_uri(), mode="append")
            place.finish(_marker(done))
        return done

    def to_delta(self, folder: Path) -> Exported:
        """The next commit of an existing Delta table: its readers see the old rows or the new ones."""
        # After the commit the old manifest would describe the new rows.
        (folder / MARKER).unlink(missing_ok=True)
        sync(folder)
        done = self._write(folder.as_uri(), mode="overwrite")
        write_durably(folder / MARKER, _marker(done), shared=True)
        return done

    def to_url(self, url: str, *, overwrite: bool) -> Exported:
        """Written in place by Spark: a store behind a URL has no rename of a whole folder."""
        with one_line_failures(url):
            place = RemoteFolder(self._spark, url)
            place.clear_for_export(overwrite=overwrite)
        done = self._write(url, mode="overwrite" if overwrite else "append")
        with one_line_failures(url):
            place.write(MARKER, _marker(done))
        return done

    def _write(self, url: str, *, mode: str) -> Exported:
        form, counts = self._exporting.format, Observation()
        with one_line_failures(f"exporting {self._exporting.topic}"):
            rows = self._rows().observe(
                counts, F.count(F.lit(1)).alias("rows"), F.count("decode_error").alias("unreadable")
            )
            if form == "jsonl":
                rows = rows.select("line")
            writer = rows.write.mode(mode).format("text" if form == "jsonl" else form)
            writer = writer.options(**_WRITER_OPTIONS.get(form, {}))
            if form == "delta":
                writer = writer.option("userMetadata", json_text(self._source))
            with _standard_timestamps(self._spark):
                writer.save(url)
            return Exported(**msgspec.structs.asdict(self._source), **counts.get)

    def _rows(self) -> DataFrame:
        exporting = self._exporting
        if exporting.format == "jsonl":
            # As bytes, so that a value that its codec can't read can be written in base64.
            return _json_lines(
                table_of(self._spark, self._offset_range, key="bytes", value="bytes"), exporting.key, exporting.value
            )
        rows = table_of(
            self._spark,
            self._offset_range,
            key=exporting.key,
            value=exporting.value,
            columns=exporting.has_columns,
            schema=exporting.schema,
            keep=exporting.has_columns and exporting.schema is None,
        )
        return flat(rows, FOR_PROGRAMS) if exporting.format == "csv" else rows


@contextmanager
def _standard_timestamps(spark: SparkSession) -> Iterator[None]:
    """Parquet's own type for a time, which every reader takes for UTC; by default Spark writes Impala's type."""
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _json_lines(rows: DataFrame, key: str, value: str) -> DataFrame:
    """Each row as the line that `scan --json` prints and `load` reads, with its `decode_error` beside it."""

    def lines(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        key_codec, value_codec = codec_named(key), codec_named(value)
        for batch in batches:
            *places, headers = [batch.column(name).to_pylist() for name in _RECORD]
            records = map(Record, *places, map(_pairs, headers))
            texts = [row_json(record, key_codec, value_codec, placed=True) for record in records]
            errors = [_decode_error(text) for text in texts]
            yield pyarrow.RecordBatch.from_pydict(
                {
                    "line": pyarrow.array([text.decode() for text in texts], pyarrow.string()),
                    "decode_error": pyarrow.array(errors, pyarrow.string()),
                }
            )

    milliseconds = rows.withColumn("timestamp", F.unix_millis("timestamp"))
    return milliseconds.select(*_RECORD).mapInArrow(lines, "line string, decode_error string")


_RECORD = ("key", "value", "partition", "offset", "timestamp", "headers")


def _pairs(headers: list[dict[str, Any]] | None) -> Headers:
    return tuple((each["key"], each["value"]) for each in headers) if headers else ()


def _decode_error(line: bytes) -> str | None:
    if b'"decode_error":' not in line:
        return None
    error = msgspec.json.decode(line, type=SentRow).decode_error
    return None if error is UNSET else error


def _marker(done: Exported) -> bytes:
    return json_text(done, indent=2, ascii_only=False).encode() + b"\n"
