/**
 * When the page is painted: at most ten times a second, all views together, whatever comes in. Nobody reads faster, and
 * a page that paints for every change of a thousand a second has no time left to answer its user.
 */

// A little over a tenth of a second: timers come early now and then.
const BETWEEN_MS = 104;

const wanted = new Set();
let last = 0;
let isDue = false;

/** Runs `work` with the next painting; once, however often it is asked for until then. */
export function soon(work) {
  wanted.add(work);
  if (isDue) return;
  isDue = true;
  setTimeout(paint, Math.max(0, last + BETWEEN_MS - performance.now()));
}

/** Takes a wish back. */
export function never(work) {
  wanted.delete(work);
}

function paint() {
  // A page that nobody sees gets no frames: it is drawn anyway, so that what it holds stays bounded.
  if (document.hidden) draw();
  else requestAnimationFrame(draw);
}

function draw() {
  isDue = false;
  last = performance.now();
  const now = [...wanted];
  wanted.clear();
  for (const each of now) {
    try {
      each();
    } catch (failure) {
      // What fails to be drawn keeps nothing else from being drawn.
      reportError(failure);
    }
  }
}

/** Lets the browser answer its user before more work is done. */
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

/** Runs `work` every second, with the painting. Returns what ends it. */
export function everySecond(work) {
  const timer = setInterval(() => soon(work), 1000);
  return () => {
    clearInterval(timer);
    never(work);
  };
}
