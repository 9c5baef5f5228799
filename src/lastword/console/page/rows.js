/**
 * Rows by key: brings the elements on the page in line with the items, and touches nothing that is the same. A changed
 * row lights up and fades, a moved row is animated, a deleted row collapses.
 */

import { prefersStillness } from "./dom.js";
import { soon } from "./paint.js";

const LIT_MS = 1800;
const LEAVING_MS = 700;
// If more rows than this change at once, none lights up: all of them would.
const MANY = 12;

/**
 * @template T
 */
export class KeyedRows {
  /**
   * @param {HTMLElement} parent
   * @param {{keyOf: (item: T) => string, make: (item: T) => HTMLElement, update: (element: HTMLElement, item: T) => void}} how
   */
  constructor(parent, { keyOf, make, update }) {
    this.parent = parent;
    this.keyOf = keyOf;
    this.make = make;
    this.update = update;
    /** @type {Map<string, HTMLElement>} */
    this.elements = new Map();
    this.leaving = new Set();
  }

  /**
   * @param {T[]} items in their order
   * @param {{lit?: Set<string>, gone?: Set<string>, moves?: boolean}} [news]
   *   lit: keys that changed; gone: keys whose rows collapse (others disappear at once); moves: rows that change places are animated
   */
  show(items, { lit = new Set(), gone = new Set(), moves = false } = {}) {
    const before = moves && !prefersStillness() ? this.places() : null;
    const keys = new Set(items.map(this.keyOf));
    for (const [key, element] of this.elements) {
      if (keys.has(key)) continue;
      this.elements.delete(key);
      if (gone.has(key) && gone.size <= MANY) this.collapse(element);
      else element.remove();
    }
    let next = this.parent.firstElementChild;
    for (const item of items) {
      const key = this.keyOf(item);
      let element = this.elements.get(key);
      if (!element) {
        element = this.make(item);
        this.elements.set(key, element);
      }
      this.update(element, item);
      // Rows that collapse keep their place.
      while (next && this.leaving.has(next)) next = next.nextElementSibling;
      if (element === next) next = next.nextElementSibling;
      else this.parent.insertBefore(element, next);
      if (lit.has(key) && lit.size <= MANY) light(element);
    }
    if (before) this.move(before);
  }

  clear() {
    this.elements.clear();
    this.leaving.clear();
    this.parent.replaceChildren();
  }

  places() {
    const places = new Map();
    for (const [key, element] of this.elements) places.set(key, element.offsetTop);
    return places;
  }

  /** Reads all places before it moves a row: one layout, not one for each row. */
  move(before) {
    const moved = [];
    for (const [key, element] of this.elements) {
      const distance = (before.get(key) ?? element.offsetTop) - element.offsetTop;
      if (distance) moved.push([element, distance]);
    }
    for (const [element, distance] of moved) {
      element.animate([{ transform: `translateY(${distance}px)` }, { transform: "none" }], {
        duration: 600,
        easing: "cubic-bezier(.2,.8,.2,1)",
      });
      // Only rows that have risen light up; the others made room.
      if (distance > 0) light(element);
    }
  }

  collapse(element) {
    this.leaving.add(element);
    element.removeAttribute("data-changed");
    element.setAttribute("data-leaving", "");
    setTimeout(
      () =>
        soon(() => {
          this.leaving.delete(element);
          element.remove();
        }),
      LEAVING_MS,
    );
  }
}

/** @type {Map<HTMLElement, number>} the lit elements, and when each was lit */
const lit = new Map();
let sweeping = null;

/** Lights an element up for a moment. */
export function light(element) {
  // A browser restarts an animation only under another name.
  element.dataset.changed = element.dataset.changed === "a" ? "b" : "a";
  lit.set(element, performance.now());
  sweeping ??= setTimeout(() => soon(sweep), LIT_MS);
}

function sweep() {
  sweeping = null;
  const before = performance.now() - LIT_MS + 50;
  for (const [element, at] of lit) {
    if (at > before) continue;
    element.removeAttribute("data-changed");
    lit.delete(element);
  }
  if (lit.size) sweeping = setTimeout(() => soon(sweep), 400);
}
