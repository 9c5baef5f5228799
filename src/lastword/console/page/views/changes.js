import { h } from "../dom.js";
export function openChanges(route) { return { element: h("div", {}, h("h1", {}, "Changes")), title: () => "Changes" }; }
