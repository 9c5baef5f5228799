/** Numbers, sizes and times as text. A missing value is "unknown", never 0. */

import { h, setText } from "./dom.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const hundredth = new Intl.NumberFormat("en", { maximumFractionDigits: 2, minimumFractionDigits: 2 });
const moments = new Intl.DateTimeFormat("en-GB", {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const hours = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});

export const isKnown = (value) => value !== null && value !== undefined;

/** How far the server's clock is ahead of ours, in ms, by its answers. Times are shown by the server's clock. */
let ahead = 0;

export function learnClock(dateHeader) {
  const theirs = Date.parse(dateHeader ?? "");
  if (Number.isNaN(theirs)) return;
  // The header has whole seconds: only a larger difference is a difference of clocks.
  const difference = theirs - Date.now();
  ahead = Math.abs(difference) > 3000 ? difference : 0;
}

export const now = () => Date.now() + ahead;

export const count = (value) => (isKnown(value) ? whole.format(value) : "unknown");

export function rate(value) {
  if (!isKnown(value)) return "unknown";
  return `${value >= 1000 ? whole.format(value) : tenth.format(value)}/s`;
}

export function bytes(value) {
  if (!isKnown(value)) return "unknown";
  if (value < 1000) return `${whole.format(value)} B`;
  let size = value;
  let unit = "";
  for (unit of ["kB", "MB", "GB", "TB"]) {
    size /= 1000;
    if (size < 999.5) break;
  }
  return `${size < 9.995 ? hundredth.format(size) : size < 99.95 ? tenth.format(size) : whole.format(size)} ${unit}`;
}

export function share(value) {
  if (!isKnown(value)) return "unknown";
  const percent = value * 100;
  // A few are not shown as none, and nearly all not as all.
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent < 100 && percent > 99.9) return "> 99.9 %";
  return `${percent === 0 || percent === 100 ? whole.format(percent) : tenth.format(percent)} %`;
}

export const times = (value) => (isKnown(value) ? `${hundredth.format(value)} ×` : "unknown");

/** A duration, in its largest unit or two. */
export function lasting(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s < 600 && s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${whole.format(Math.floor(s / 86400))} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function ago(at) {
  if (!isKnown(at)) return "unknown";
  const passed = now() - at;
  if (passed < -2000) return `in ${lasting(-passed)}`;
  return passed < 1000 ? "just now" : `${lasting(passed)} ago`;
}

export const moment = (at) => (isKnown(at) ? moments.format(at) : "unknown");
export const hour = (at) => (isKnown(at) ? hours.format(at) : "unknown");

/** How long ago something was, with the exact time as a tooltip; `tick` updates it. */
export function since(at) {
  const element = h("time", { "data-ago": "" });
  setSince(element, at);
  return element;
}

export function setSince(element, at) {
  if (!isKnown(at)) {
    element.removeAttribute("datetime");
    element.dataset.ago = "";
    setText(element, "unknown");
    return;
  }
  if (element.dataset.ago === String(at)) return;
  element.dataset.ago = String(at);
  element.setAttribute("datetime", new Date(at).toISOString());
  element.title = moment(at);
  setText(element, ago(at));
}

/** Updates every time on the page. */
export function tick() {
  for (const element of document.querySelectorAll("time[data-ago]")) {
    if (element.dataset.ago) setText(element, ago(Number(element.dataset.ago)));
  }
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
