// What a reader copies of a log is what was written, and not what the page shows of it: a line that writes over itself is
// shown as its end, and colours are no text.

/** The element of a text has the place of its line as `data-at`. */
const TEXTS = '[data-at]'

/** Puts the written texts of the selected lines into the clipboard. A part of one line is copied as it is shown. */
export function copyWritten(event: ClipboardEvent, textAt: (at: number) => string): void {
  const selection = getSelection()
  if (!(event.currentTarget instanceof Element) || !selection || selection.rangeCount === 0) return
  const range = selection.getRangeAt(0)
  const chosen = [...event.currentTarget.querySelectorAll<HTMLElement>(TEXTS)].filter(
    text => range.comparePoint(text, 0) <= 0 && range.comparePoint(text, text.childNodes.length) >= 0,
  )
  const [only] = chosen
  if (!only || (chosen.length === 1 && selection.toString().trim() !== only.textContent?.trim())) return
  event.clipboardData?.setData('text/plain', chosen.map(text => textAt(Number(text.dataset.at))).join('\n'))
  event.preventDefault()
}
