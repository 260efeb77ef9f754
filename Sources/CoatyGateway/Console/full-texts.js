// Shows a text that does not fit as the title of its element.

const cut = ".clip, .offer, .namespace, .row span"

/** Sets the title when the pointer comes to an element whose text is cut, and removes it when the text fits again. */
export function showFullTexts() {
  document.addEventListener("pointerover", ({ target }) => {
    const element = target.closest?.(cut)
    if (!element) return
    const isCut = element.scrollWidth > element.clientWidth
    if (isCut && (!element.title || element.dataset.fullText)) {
      element.title = element.textContent
      element.dataset.fullText = "true"
    } else if (!isCut && element.dataset.fullText) {
      element.removeAttribute("title")
      delete element.dataset.fullText
    }
  })
}
