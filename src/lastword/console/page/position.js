/** Positions as the server writes them: for each partition the next offset, like `0:18,1:5`. */

/** @returns {Map<number, number>} */
export function offsetsOf(position) {
  const parts = (position ?? "").split(",").filter(Boolean);
  return new Map(parts.map((part) => /** @type {[number, number]} */ (part.split(":").map(Number))));
}

/** The first position that covers both; null if both are empty. */
export function later(one, other) {
  const offsets = offsetsOf(one);
  for (const [partition, offset] of offsetsOf(other))
    offsets.set(partition, Math.max(offset, offsets.get(partition) ?? 0));
  return [...offsets].map((each) => each.join(":")).join(",") || null;
}

/** Whether `position` covers `other`: everything before `other` is before `position`. */
export function covers(position, other) {
  const offsets = offsetsOf(position);
  return [...offsetsOf(other)].every(([partition, offset]) => (offsets.get(partition) ?? 0) >= offset);
}
