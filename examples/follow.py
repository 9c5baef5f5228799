"""Acts on every change of a table, and misses none: python follow.py HOST:PORT TOPIC POSITION_FILE

Stop it, kill it, start it again: it continues after the last change that it acted on.
"""

import sys
from pathlib import Path

import lastword


def act_on(key: object, value: object) -> None:
    print(f"{key} = {value}", flush=True)


def save(position: lastword.Position, place: Path) -> None:
    # By a rename: after a kill the file holds the old position or the new one, never a part.
    place.with_suffix(".new").write_text(str(position))
    place.with_suffix(".new").replace(place)


def started_over(replica: lastword.Replica, saved: Path) -> lastword.Watch[lastword.Row]:
    """A watch from now on, after acting on every existing row."""
    replica.wait_until_ready()
    watch = replica.watch()  # before the rows are read, so that no change between is missed
    for key, value in replica.items():
        act_on(key, value)
    save(watch.position, saved)
    return watch


def follow(replica: lastword.Replica, saved: Path) -> None:
    while not replica.is_closed:
        try:
            watch = replica.watch(saved.read_text()) if saved.exists() else started_over(replica, saved)
            for change in watch:
                act_on(change.key, None if change.deleted else change.value)
                save(watch.position, saved)
        except lastword.FellBehind:
            continue  # too slow, but nothing is lost: continue from the saved position
        except lastword.HistoryLost:
            saved.unlink()  # the replica was rebuilt, or a delete may be missing: start again from the rows


if __name__ == "__main__":
    servers, topic, position_file = sys.argv[1:]
    with lastword.connect(servers) as cluster, cluster.table(topic).replica(f"{position_file}.replica") as table:
        print(f"ready with {len(table)} rows", flush=True)
        try:
            follow(table, Path(position_file))
        except KeyboardInterrupt:
            print("stopped")
