// The answers to the page's last requests.

import { clock, h, plural, setHidden } from "./dom.js"

/** Maximum number of requests that are kept, and of answers to each. */
export const maximumRequests = 10
const maximumAnswers = 20

/** A list of requests with their answers, latest first. */
export class AnswerHistory {
  element
  #list = h("ol", { className: "rows", "aria-label": "Earlier requests" })

  constructor() {
    this.element = h("section", { className: "earlier", "aria-label": "Earlier", hidden: true }, h("h3", {}, "Earlier"), this.#list)
  }

  /**
   * Adds a request.
   *
   * @param {{ event: string, title: string, at: number, outcome: string }} request what was sent and when, and how it ended
   * @param {HTMLElement[]} answers the rows of its answers, which are moved here
   */
  add({ event, title, at, outcome }, answers) {
    const kept = answers.slice(0, maximumAnswers)
    const rest = answers.length - kept.length
    const summary = h("summary", { className: "answer-line" },
      h("span", { className: "tag", "data-pattern": event }, event),
      h("span", { className: "clip answer-subject", title }, title || "–"),
      h("span", { className: "clip answer-sender" }, outcome),
      h("span", { className: "num muted" }, clock(at)))
    // The first of several answers was open in the card; here they are closed, and a single answer is open.
    for (const answer of kept) for (const details of answer.querySelectorAll("details")) details.open = kept.length === 1
    const details = h("details", {}, summary,
      kept.length > 0 ? h("ol", { className: "rows earlier-answers" }, kept) : h("p", { className: "muted" }, "No answers."),
      rest > 0 && h("p", { className: "muted" }, `${plural(rest, "more answer")} not kept.`))
    this.#list.prepend(h("li", {}, details))
    while (this.#list.children.length > maximumRequests) this.#list.lastChild.remove()
    setHidden(this.element, false)
  }
}
