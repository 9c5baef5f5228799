import { h } from "../dom.js";
export function openBoard(route) { return { element: h("div", {}, h("h1", {}, "Board")), title: () => "Board" }; }
