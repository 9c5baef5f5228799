/** What the page has seen of the teams since it was opened: enough for a line of the last minutes, and no more. */

const MOST = 180;
const BETWEEN_MS = 1000;
const OVER = 5;

/** @type {Map<string, {at: number, flagged: number|null}[]>} */
const seen = new Map();
let last = 0;

/** Remembers a board. */
export function remember(board, at = Date.now()) {
  if (at - last < BETWEEN_MS) return;
  last = at;
  const teams = new Set();
  for (const { team, flagged } of board.teams) {
    teams.add(team);
    if (!seen.has(team)) seen.set(team, []);
    const points = seen.get(team);
    points.push({ at, flagged });
    if (points.length > MOST) points.splice(0, points.length - MOST);
  }
  for (const team of seen.keys()) if (!teams.has(team)) seen.delete(team);
}

/**
 * How many a team flagged a second, over the last few boards at each: from one to the next they come in steps. Where its
 * counters went back it is not known.
 */
export function flaggedPerSecond(team) {
  const points = seen.get(team) ?? [];
  return points.slice(1).map((point, before) => {
    const from = points[Math.max(0, before + 1 - OVER)];
    const isKnown = point.flagged !== null && from.flagged !== null && point.flagged >= from.flagged;
    return { at: point.at, value: isKnown ? ((point.flagged - from.flagged) * 1000) / (point.at - from.at) : null };
  });
}
