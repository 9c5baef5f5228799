/**
 * When the page is painted: at most ten times per second, all views together. Nobody reads faster, and a page that paints
 * a thousand changes per second one by one has no time to respond to its user.
 */

// A little over a tenth of a second: timers sometimes fire early.
const BETWEEN_MS = 104;

const queued = new Set();
let last = 0;
let isDue = false;

/** Runs `work` once with the next painting, however often it is requested until then. */
export function soon(work) {
  queued.add(work);
  if (isDue) return;
  isDue = true;
  setTimeout(paint, Math.max(0, last + BETWEEN_MS - performance.now()));
}

/** Takes a request back. */
export function never(work) {
  queued.delete(work);
}

function paint() {
  // A hidden page gets no frames. It is drawn anyway, so that its memory stays bounded.
  if (document.hidden) draw();
  else requestAnimationFrame(draw);
}

function draw() {
  isDue = false;
  last = performance.now();
  const due = [...queued];
  queued.clear();
  for (const each of due) {
    try {
      each();
    } catch (failure) {
      // An error in one drawing does not stop the others.
      reportError(failure);
    }
  }
}

/** Lets the browser respond to its user before the work continues. */
export function breath() {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve(undefined);
    };
    channel.port2.postMessage(null);
  });
}

/** Runs `work` every second, with the painting. Returns a function that stops it. */
export function everySecond(work) {
  const timer = setInterval(() => soon(work), 1000);
  return () => {
    clearInterval(timer);
    never(work);
  };
}
