/**
 * JSON as text. A browser's parser would round long numbers, drop repeated names, and build a megabyte of objects to show
 * twenty lines. Here values are found in the text itself, and shown token by token as they were written.
 */

const QUOTE = 34,
  BACKSLASH = 92,
  OPEN = 123,
  CLOSE = 125,
  OPEN_LIST = 91,
  CLOSE_LIST = 93;

const isSpace = (code) => code === 32 || code === 10 || code === 13 || code === 9;

function skipSpace(text, at) {
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

/** Where the text in quotes at `at` ends. */
function endOfText(text, at) {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((end - before) % 2) return end + 1;
  }
  return text.length;
}

/** Where the value that begins at `at` ends. */
export function endOf(text, at) {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return endOfText(text, at);
  if (first !== OPEN && first !== OPEN_LIST) {
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === 44 || code === CLOSE || code === CLOSE_LIST || isSpace(code)) break;
      at++;
    }
    return at;
  }
  let depth = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfText(text, at);
      continue;
    }
    if (code === OPEN || code === OPEN_LIST) depth++;
    else if ((code === CLOSE || code === CLOSE_LIST) && --depth === 0) return at + 1;
    at++;
  }
  return at;
}

/**
 * The members of the object or list that begins at `at`, from the place `from` on (that of an earlier call), at most `limit`.
 * @returns {{members: {name: string|null, start: number, end: number}[], more: number|null}} `more` is where to continue
 */
export function membersOf(text, at, { from = at + 1, limit = Infinity } = {}) {
  const isObject = text.charCodeAt(at) === OPEN;
  const members = [];
  let place = skipSpace(text, from);
  while (place < text.length && text.charCodeAt(place) !== CLOSE && text.charCodeAt(place) !== CLOSE_LIST) {
    if (members.length === limit) return { members, more: place };
    let name = null;
    if (isObject) {
      const end = endOfText(text, place);
      name = text.slice(place, end);
      place = skipSpace(text, skipSpace(text, end) + 1);
    }
    const end = endOf(text, place);
    members.push({ name, start: place, end });
    place = skipSpace(text, end);
    if (text.charCodeAt(place) === 44) place = skipSpace(text, place + 1);
  }
  return { members, more: null };
}

/** The members of an object at the start of a text, by name, each as its text. */
export function fieldsOf(text) {
  const fields = {};
  for (const { name, start, end } of membersOf(text, skipSpace(text, 0)).members) {
    fields[JSON.parse(name)] = text.slice(start, end);
  }
  return fields;
}

/** @returns {"object"|"list"|"text"|"number"|"literal"} */
export function kindAt(text, at) {
  const first = text.charCodeAt(at);
  if (first === OPEN) return "object";
  if (first === OPEN_LIST) return "list";
  if (first === QUOTE) return "text";
  return first === 45 || (first >= 48 && first <= 57) ? "number" : "literal";
}

/** The same JSON with a line for each member: no token is changed. */
export function indented(text) {
  const lines = [];
  let indent = "";
  let line = "";
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const mark = text[at];
    if (mark === '"') {
      const end = endOfText(text, at);
      line += text.slice(at, end);
      at = end;
    } else if (mark === "{" || mark === "[") {
      const next = skipSpace(text, at + 1);
      if (text[next] === "}" || text[next] === "]") {
        line += mark + text[next];
        at = next + 1;
      } else {
        lines.push(line + mark);
        indent += "  ";
        line = indent;
        at++;
      }
    } else if (mark === "}" || mark === "]") {
      lines.push(line);
      indent = indent.slice(2);
      line = indent + mark;
      at++;
    } else if (mark === ",") {
      lines.push(`${line},`);
      line = indent;
      at++;
    } else if (mark === ":") {
      line += ": ";
      at++;
    } else {
      const end = Math.max(at + 1, endOf(text, at));
      line += text.slice(at, end);
      at = end;
    }
  }
  lines.push(line);
  return lines.join("\n");
}
