"""lastword: the last word on every key of a compacted Kafka topic."""

__version__ = "0.1.0"
