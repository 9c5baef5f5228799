import { h } from "../dom.js";
export function openTopic(route) { return { element: h("div", {}, h("h1", {}, "Topic")), title: () => "Topic" }; }
