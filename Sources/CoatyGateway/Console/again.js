// What goes on for as long as the page is there.

/** Milliseconds until something that has ended, or was refused, begins again. */
const pauseAfterEnd = 2000
const pauseAfterRefusal = 10_000

/**
 * Does something again and again.
 *
 * @param {() => Promise<void>} turn
 * @param {(error: any) => void} [refused] told why a turn has failed
 */
export async function again(turn, refused = () => {}) {
  for (;;) {
    let pause = pauseAfterEnd
    try {
      await turn()
    } catch (error) {
      refused(error)
      pause = pauseAfterRefusal
    }
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}
