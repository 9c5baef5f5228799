/** The lines of the changes; their elements are reused. */

import { fill, h, setAttribute, setText } from "../dom.js";
import { bytes, setSince, since } from "../format.js";
import { line } from "../parts.js";
import { href } from "../router.js";
import { light } from "../rows.js";
import { previewNode } from "../value.js";
import { isolated } from "../visible.js";

const CELLS = [
  { name: "kind" },
  { name: "key", isHead: true, class: "cell-key" },
  { name: "value", class: "cell-value" },
  { name: "size", class: "num" },
  { name: "table" },
  { name: "place", class: "num mono" },
  { name: "time", class: "num" },
];
// More new lines than FEW are not highlighted: the whole list would be. More than FLOOD are a flood.
const FEW = 10;
const FLOOD = 25;
const AT_ONCE = 24;

/**
 * Lines that reuse their elements: at a thousand changes per second, making and removing elements would be most of the
 * work. A line that stays keeps its element; elements that fall off at the end become the new ones at the top.
 */
export class ChangeLines {
  constructor(body) {
    this.body = body;
    /** @type {Map<number, HTMLElement>} */
    this.lines = new Map();
    this.most = AT_ONCE;
  }

  /**
   * Shows as many lines as there is time for: in a flood only the newest, otherwise more with each painting. True when
   * there are more to show.
   * @param {import("../feed.js").Change[]} all
   */
  show(all) {
    const news = all.findIndex((change) => this.lines.has(change.id));
    const isFlood = (news < 0 ? all.length : news) > FLOOD;
    this.most = isFlood ? AT_ONCE : Math.min(all.length, this.most + AT_ONCE);
    const changes = all.slice(0, Math.max(this.most, AT_ONCE));
    this.put(changes);
    return changes.length < all.length;
  }

  put(changes) {
    const ids = new Set(changes.map((change) => change.id));
    const free = [];
    for (const [id, element] of this.lines) {
      if (ids.has(id)) continue;
      this.lines.delete(id);
      free.push(element);
    }
    const fresh = changes.filter((change) => !this.lines.has(change.id));
    let next = this.body.firstChild;
    for (const change of changes) {
      let element = this.lines.get(change.id);
      if (!element) {
        element = free.pop() ?? emptyLine();
        fillLine(element, change);
        this.lines.set(change.id, element);
        if (fresh.length <= FEW) light(element);
        else element.removeAttribute("data-changed");
      }
      if (element === next) next = next.nextSibling;
      else this.body.insertBefore(element, next);
    }
    for (const element of free) element.remove();
  }
}

function emptyLine() {
  const { element, cells } = line(CELLS);
  const tag = h("span", { class: "tag" });
  const time = since(null);
  const link = h("a", {});
  const table = h("a", {});
  cells.kind.append(tag);
  cells.key.append(link);
  cells.table.append(table);
  cells.time.append(time);
  element.made = { cells, tag, time, link, table };
  return element;
}

function fillLine(element, change) {
  const { cells, tag, time, link, table } = element.made;
  const kind = change.isDelete ? "delete" : "put";
  setAttribute(element, "data-kind", kind);
  setAttribute(element, "data-key", change.key);
  setAttribute(element, "data-table", change.table);
  setAttribute(element, "data-offset", change.place);
  tag.className = `tag ${kind}`;
  setText(tag, kind);
  fill(link, isolated(change.key));
  setAttribute(link, "href", change.isOpaqueKey ? null : href(["tables", change.table, change.key]));
  fill(
    cells.value,
    change.isDelete
      ? h("span", { class: "soft small" }, change.isSwept ? "found by a sweep" : "tombstone")
      : change.error !== null
        ? h("span", { class: "warned small" }, "not readable")
        : change.beginning === ""
          ? h("span", { class: "soft small" }, "empty")
          : previewNode(change.beginning, change.isCut),
  );
  setText(cells.size, change.isDelete ? "" : bytes(change.size));
  setText(table, change.table);
  setAttribute(table, "href", href(["tables", change.table]));
  setText(cells.place, change.place);
  setSince(time, change.timestamp);
}
