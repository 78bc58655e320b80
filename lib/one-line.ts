// Names and messages that others wrote, where they stand among lines of ours: a line break in them would begin a line that
// looks like ours.

/** The text with ` / ` for its line breaks. */
export function oneLine(text: string): string {
  return text
    .split(/[\n\v\f\r\u0085\u2028\u2029]+/)
    .map(part => part.trim())
    .filter(Boolean)
    .join(' / ')
}
