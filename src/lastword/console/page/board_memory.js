/** The boards that the page has received: enough of them for a line of the last minutes. */

const MOST = 180;
const BETWEEN_MS = 1000;
const OVER = 5;

/** @type {Map<string, {at: number, flagged: number|null}[]>} */
const pointsByTeam = new Map();
let last = 0;

/** Remembers a board. */
export function remember(board, at = Date.now()) {
  if (at - last < BETWEEN_MS) return;
  last = at;
  const teams = new Set();
  for (const { team, flagged } of board.teams) {
    teams.add(team);
    if (!pointsByTeam.has(team)) pointsByTeam.set(team, []);
    const points = pointsByTeam.get(team);
    points.push({ at, flagged });
    if (points.length > MOST) points.splice(0, points.length - MOST);
  }
  for (const team of pointsByTeam.keys()) if (!teams.has(team)) pointsByTeam.delete(team);
}

/**
 * Users flagged per second by a team, averaged over a few boards because the counters grow in steps. Unknown where the
 * counters went back.
 */
export function flaggedPerSecond(team) {
  const points = pointsByTeam.get(team) ?? [];
  return points.slice(1).map((point, before) => {
    const from = points[Math.max(0, before + 1 - OVER)];
    const isKnown = point.flagged !== null && from.flagged !== null && point.flagged >= from.flagged;
    return { at: point.at, value: isKnown ? ((point.flagged - from.flagged) * 1000) / (point.at - from.at) : null };
  });
}
