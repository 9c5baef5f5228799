/**
 * Addresses of the page: every view, and every key, has one that can be sent to somebody else. They are behind the `#`,
 * because the paths themselves belong to the HTTP API.
 */

/**
 * @typedef {{view: string, table: string|null, key: string|null, topic: string|null, query: URLSearchParams}} Route
 */

/** @returns {Route} */
export function routeOf(hash) {
  const [path, query = ""] = split(hash.replace(/^#/, ""), "?");
  const [first = "", name = null, ...rest] = path
    .split("/")
    .filter((part, at) => at > 0 || part)
    .map(decoded);
  // A key may have slashes in it, as they are or encoded.
  const key = rest.join("/") || null;
  const route = { view: "missing", table: null, key: null, topic: null, query: new URLSearchParams(query) };
  if (first === "" && name === null) return { ...route, view: "overview" };
  if (first === "board" && name === null) return { ...route, view: "board" };
  if (first === "changes" && name === null) return { ...route, view: "changes" };
  if (first === "tables") return name ? { ...route, view: "table", table: name, key } : { ...route, view: "tables" };
  if (first === "topics") return name ? { ...route, view: "topic", topic: name } : { ...route, view: "topics" };
  return route;
}

/** The address of a view: `href(["tables", "users", "a/b"], {prefix: "a"})`; empty values are left out of the query. */
export function href(parts, query = {}) {
  const entries = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(entries).toString();
  return `#/${parts.map(encoded).join("/")}${search ? `?${search}` : ""}`;
}

export function go(address, { replace = false } = {}) {
  if (location.hash === address) return;
  if (!replace) {
    location.hash = address;
    return;
  }
  history.replaceState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

let visits = 0;
addEventListener("hashchange", () => visits++);

/**
 * A function that says later whether the reader is still at the present address. Work that finishes late asks it before
 * it changes the address: only the reader leaves an address that the reader chose.
 * @returns {() => boolean}
 */
export function stay() {
  // The address changes at once and its event comes later: only both together show every move.
  const [address, visit] = [location.hash, visits];
  return () => location.hash === address && visits === visit;
}

export const current = () => routeOf(location.hash || "#/");

/** Percent-encoded; parts of a key that are not well-formed text become replacement characters. */
export function encoded(text) {
  return encodeURIComponent(text.isWellFormed?.() === false ? text.toWellFormed() : text);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function split(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
