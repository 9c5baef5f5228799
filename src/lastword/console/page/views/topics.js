import { h } from "../dom.js";
export function openTopics(route) { return { element: h("div", {}, h("h1", {}, "Topics")), title: () => "Topics" }; }
