// Makes names and messages of others safe to print within our own lines: a line break in them would start a line that
// looks like ours.

/**
 * The lines of a text that say something, without blanks at their ends. A pattern with blanks around a line break would
 * take a time that grows with the square of a run of blanks.
 */
export function linesOf(text: string): string[] {
  return text
    .split(/[\n\v\f\r\u0085\u2028\u2029]+/)
    .map(part => part.trim())
    .filter(Boolean)
}

/** All lines of a text as they are, whatever ends them. */
export const splitLines = (text: string): string[] => text.split(/\r\n|[\n\v\f\u0085\u2028\u2029]/)

/** The text with each line break replaced by ` / `. */
export function oneLine(text: string): string {
  return linesOf(text).join(' / ')
}
