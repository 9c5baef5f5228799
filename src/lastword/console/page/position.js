/** Positions as the server writes them: for each partition the next offset, like `0:18,1:5`. */

/** @returns {Map<number, number>} */
export function offsetsOf(position) {
  const parts = (position ?? "").split(",").filter(Boolean);
  return new Map(parts.map((part) => /** @type {[number, number]} */ (part.split(":").map(Number))));
}

/** The first position from which nothing before either of the two is missing; null where there is none. */
export function later(one, other) {
  const offsets = offsetsOf(one);
  for (const [partition, offset] of offsetsOf(other))
    offsets.set(partition, Math.max(offset, offsets.get(partition) ?? 0));
  return [...offsets].map((each) => each.join(":")).join(",") || null;
}

/** Whether everything before `wanted` is before `position`. */
export function covers(position, wanted) {
  const offsets = offsetsOf(position);
  return [...offsetsOf(wanted)].every(([partition, offset]) => (offsets.get(partition) ?? 0) >= offset);
}
