import { h } from "../dom.js";
export function openTable(route) { return { element: h("div", {}, h("h1", {}, "Table")), title: () => "Table" }; }
