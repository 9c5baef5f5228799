"""What Spark takes for JSON before it is written is what every reader of a table takes for JSON."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lastword.core.codecs import codec_named, readable_by
from lastword.spark.reading.json_text import is_json

JSON = ["1", " 1 ", "-0.5e3", "null", "true", '"x"', '""', "[]", "[1,[2]]", "{}", '{"a":1,"a":2}', '{"a":{"b":null}}']
JSON += ['"é😀"', '"\\u00e9\\ud83d\\ude00"', '"\\\\ud800"', '"\\n"', "1" * 60, "[" * 400 + "]" * 400, '{"\\"":1}']
NO_JSON = [
    "",
    " ",
    "oops",
    "tru",
    "1 2",
    "1,2",
    "01",
    "+1",
    ".5",
    "NaN",
    "-Infinity",
    "[1",
    "[1,]",
    "1]",
    '"x"]',
    '"x"}',
]
NO_JSON += ['{"a":1}}', '{"a":1} x', "{'a':1}", "'x'", "{a:1}", '{"a"}', '{"a":}', '1,"b":2', "/**/ 1", "1 // c"]
NO_JSON += ['"a\tb"', '"\\x"', '"\\ud800"', '{"\\udc00x":1}', '"\\ud83d\\ud83d"', '"\\\\\\ud800"', "\x001", '{"a":NaN}']


def test_the_same_texts_are_json_as_for_the_codec(spark: SparkSession) -> None:
    texts = [*JSON, *NO_JSON]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    found = {
        row["text"]: row["is_json"] for row in rows.select("text", is_json(F.col("text")).alias("is_json")).collect()
    }
    readable = readable_by(codec_named("json"))
    assert found == {text: readable(text.encode()) for text in texts}
    assert {text for text, is_so in found.items() if is_so} == set(JSON)
