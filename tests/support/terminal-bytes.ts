// What a terminal would do with a text besides showing it.

const SGR = /\x1b\[[0-9;]*m/g
// Written down from Unicode's files, and not taken from the program: C0, DEL, C1, the marks of direction, what has no
// shape, the separators of lines.
const UNSEEN = new RegExp(
  [
    String.raw`[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u200b-\u200f\u2028-\u202e\u2060-\u206f]`,
    String.raw`[\u034f\u180b-\u180f\ufe00-\ufe0f\u3164\ufeff\uffa0\ufff0-\ufffb]`,
    String.raw`[\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]`,
  ].join('|'),
  'gu',
)

/** What is neither printable text nor a line break, by code point. */
export function unseen(text: string): string[] {
  return [...text.matchAll(UNSEEN)].map(([found]) => `U+${found.codePointAt(0)!.toString(16)}`)
}

/** The same besides colours. */
export function obeyed(text: string): string[] {
  return unseen(text.replace(SGR, ''))
}
