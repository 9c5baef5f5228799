/** Small line charts of numbers over time, with a text for screen readers. */

import { s, setAttribute } from "./dom.js";

const WIDTH = 120,
  HEIGHT = 28;

/**
 * A line that can be redrawn; with `clips` the few highest points are cut off, so that one spike does not flatten the
 * rest.
 * @returns {{element: SVGElement, draw: (points: {at: number, value: number|null}[], label: string) => void}}
 */
export function sparkline({ width = WIDTH, height = HEIGHT, zero = true, fill = true, clips = false } = {}) {
  const area = s("path", { class: "spark-area" });
  const line = s("path", { class: "spark-line" });
  // A line of no length with round ends: it stays a disc when the chart is stretched.
  const dot = s("path", { class: "spark-dot" });
  const element = s(
    "svg",
    {
      class: "spark",
      role: "img",
      viewBox: `0 0 ${width} ${height}`,
      preserveAspectRatio: "none",
      width,
      height,
      "aria-label": "No figures yet",
    },
    fill ? area : null,
    line,
    dot,
  );
  const draw = (points, label) => {
    setAttribute(element, "aria-label", label);
    const known = points.filter((point) => point.value !== null && point.value !== undefined);
    if (known.length < 2) {
      for (const path of [area, line]) path.setAttribute("d", "");
      return setAttribute(dot, "visibility", "hidden");
    }
    const first = points[0].at,
      span = Math.max(1, points.at(-1).at - first);
    const values = known.map((point) => point.value);
    const low = zero ? Math.min(0, ...values) : Math.min(...values);
    const high = clips
      ? [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * 0.95)]
      : Math.max(...values);
    const x = (at) => (((at - first) / span) * (width - 6) + 2).toFixed(1);
    // A constant lies in the middle, unless it is 0.
    const y = (value) =>
      (high === low
        ? high === 0
          ? height - 3
          : height / 2
        : height - 3 - ((Math.min(value, high) - low) / (high - low)) * (height - 6)
      ).toFixed(1);
    setAttribute(
      line,
      "d",
      runsOf(points)
        .map((piece) => `M${piece.map((p) => `${x(p.at)} ${y(p.value)}`).join("L")}`)
        .join(""),
    );
    if (fill) {
      setAttribute(
        area,
        "d",
        runsOf(points)
          .map(
            (piece) =>
              `M${x(piece[0].at)} ${height}L${piece.map((p) => `${x(p.at)} ${y(p.value)}`).join("L")}L${x(piece.at(-1).at)} ${height}Z`,
          )
          .join(""),
      );
    }
    const last = known.at(-1);
    setAttribute(dot, "d", `M${x(last.at)} ${y(last.value)}h0.01`);
    setAttribute(dot, "visibility", null);
  };
  return { element, draw };
}

/** Runs of known points: a gap in the data is a gap in the line. */
function runsOf(points) {
  const runs = [];
  let piece = [];
  for (const point of points) {
    if (point.value === null || point.value === undefined) {
      if (piece.length) runs.push(piece);
      piece = [];
    } else piece.push(point);
  }
  if (piece.length) runs.push(piece);
  return runs;
}
