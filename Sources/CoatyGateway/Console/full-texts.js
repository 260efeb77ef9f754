// Tooltips for texts that do not fit.

const holders = ".row, .clip, .offer, .namespace"

/** Sets the title of an element while the pointer is on a text in it that is cut off. */
export function showFullTexts() {
  document.addEventListener("pointermove", ({ target, clientX, clientY }) => {
    const holder = target.closest?.(holders)
    if (!holder || (holder.title && !holder.dataset.fullText)) return
    // Not all browsers dispatch pointer events to the children of a button.
    const cells = holder.matches(".row") ? [...holder.children] : [holder]
    const cell = cells.find((cell) => contains(cell.getBoundingClientRect(), clientX, clientY))
    const { uncut } = cell?.dataset ?? {}
    if (cell && (uncut !== undefined || [cell, ...cell.children].some(isCut))) {
      holder.title = uncut ?? cell.textContent
      holder.dataset.fullText = "true"
    } else if (holder.dataset.fullText) {
      holder.removeAttribute("title")
      delete holder.dataset.fullText
    }
  })
}

const isCut = ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth

const contains = ({ left, right, top, bottom }, x, y) => x >= left && x <= right && y >= top && y <= bottom
