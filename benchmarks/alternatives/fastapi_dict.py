"""The alternative that most people would write first: FastAPI and uvicorn over a dict that holds every row.

    python fastapi_dict.py PORT ROWS_TSV

One worker, with the event loop and the parser that `uvicorn[standard]` brings, and no access log. It has no ETag, no
position and no Kafka: only a lookup and the same JSON.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel


class Row(BaseModel):  # type: ignore[misc]
    key: str
    value: Any
    partition: int
    offset: int
    timestamp: int


app = FastAPI()
rows: dict[str, Row] = {}


@app.get("/tables/users/rows/{key}")  # type: ignore[untyped-decorator]
async def row(key: str) -> Row:
    answer = rows.get(key)
    if answer is None:
        raise HTTPException(404, "this key has no row")
    return answer


def fill(pairs: Path) -> None:
    with pairs.open(encoding="ascii") as lines:
        for offset, line in enumerate(lines):
            key, _, value = line.rstrip("\n").partition("\t")
            rows[key] = Row(key=key, value=json.loads(value), partition=0, offset=offset, timestamp=1_700_000_000_000)
    # The garbage collector would otherwise scan all rows now and then, which is not to be measured.
    gc.freeze()


if __name__ == "__main__":
    _, port, pairs = sys.argv
    fill(Path(pairs))
    uvicorn.run(app, host="127.0.0.1", port=int(port), access_log=False, log_level="warning")
