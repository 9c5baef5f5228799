/**
 * Elements, made one way only: by name, attributes and text. There is no path from a value to markup here, which is
 * what keeps a hostile value a value (the page's policy forbids the other ways as well).
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. In `props`: `class`, `on: {event: listener}`, `style: {--name: value}`, and attributes; `true` is an
 * attribute without a value, and null, undefined and false are none.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...any} children nodes, text, numbers, lists of these; null is nothing
 * @returns {any}
 */
export function h(tag, props, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** The same for SVG. @returns {any} */
export function s(tag, props, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style")
      for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child);
  }
}

/** Sets text only where it differs, so that the browser lays out nothing for equal text. */
export function setText(element, text) {
  const next = String(text);
  if (element.textContent !== next) element.textContent = next;
}

/** Sets an attribute where it differs; null removes it. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const next = value === true ? "" : String(value);
  if (element.getAttribute(name) !== next) element.setAttribute(name, next);
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Says something to users of a screen reader, without moving their focus. */
export function announce(text) {
  const place = document.querySelector("[data-announcer]");
  if (place) setText(place, text);
}

export const prefersStillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
