// The only table of characters that readers do not see, or that look like something else: controls
// (C0, C1, DEL), separators of lines, marks of the writing direction, everything without a shape, and blanks that are
// not the ordinary one. The properties of Unicode say which these are, so that the table does not age.

/** U+2800 is a Braille pattern without a dot. */
const UNSEEN = String.raw`\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800`
/** An emoji with what joins its parts and selects its form (https://unicode.org/reports/tr51/). */
const EMOJI = String.raw`\p{RGI_Emoji}|\p{Extended_Pictographic}[\ufe0e\ufe0f]`

/** Scripts in which U+200C and U+200D choose the form of letters (https://unicode.org/reports/tr31/, A1 and A2). */
const JOINED = ['Arab', 'Syrc', 'Mong', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu', 'Knda', 'Mlym', 'Sinh']
const LETTER = `[${JOINED.map(script => String.raw`\p{Script_Extensions=${script}}`).join('')}]`
const JOINER = String.raw`(?<=${LETTER})[\u200c\u200d](?=${LETTER})`
/** Found in ordinary texts: emoji, joiners, ends of lines, tabs, and the mark of UTF-8 at the beginning. */
const USUAL = String.raw`${EMOJI}|${JOINER}|\r\n|[\t\n]|^\ufeff`

/** What most texts consist of is recognised without the tables of Unicode. */
const PLAIN = /^[\x20-\x7e]*$/
const unseen = new RegExp(`[${UNSEEN}]`, 'gv')
/** What is no emoji is captured. */
const drawn = new RegExp(`${EMOJI}|([${UNSEEN}])`, 'gv')
const suspicious = new RegExp(`${USUAL}|([${UNSEEN}])`, 'gv')
/** The same, and blanks: in the words of a program another blank is another word. */
const suspiciousInCode = new RegExp(String.raw`${USUAL}|([[${UNSEEN}\p{Zs}]--\x20])`, 'gv')

/** `U+202E` */
function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * The text as a terminal may show it: controls as `·`, what else is unseen as `<U+202E>`. Emoji lose what joins their
 * parts, because terminals do not agree how wide the joined form is.
 */
export function seen(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(drawn, (found, alone?: string) => {
    if (alone === undefined) return found.replace(unseen, '')
    return /\p{Cc}/u.test(found) ? '·' : `<${codeOf(found)}>`
  })
}

/** The text of a JSON value with each unseen character escaped. It parses to the same value. */
export function seenJson(json: string): string {
  if (PLAIN.test(json)) return json
  // JSON has escaped the line breaks in strings already. Those that are left stand between its lines.
  return json.replace(unseen, found => (found === '\n' ? found : found.replace(/./gs, escaped)))
}

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A text of several lines in which what nobody sees has its name: `<U+202E>`. */
export function named(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(suspicious, (found, alone?: string) => (alone === undefined ? found : `<${codeOf(found)}>`))
}

/** Texts for people, in which an unusual blank is typography. */
const PROSE = /\.(md|markdown|txt|html?|csv|tsv)$/i
/** More of them in one file are counted. */
const MOST = 20

/** A sentence about a file, and where in it: `team.yml:3:12`. */
export interface FileNote {
  place: string | null
  message: string
}

export const noteText = ({ place, message }: FileNote): string => (place === null ? message : `${place}: ${message}`)

/** As `unseenIn`, one line each: `team.yml:3:12: U+202E stands here, which …`. */
export const unseenNotes = (path: string, content: string | Uint8Array): string[] =>
  unseenIn(path, content).map(noteText)

/**
 * Says what in a file that people review is not what it looks like. Nothing is said of the contents of files that are no
 * text.
 */
export function unseenIn(path: string, content: string | Uint8Array): FileNote[] {
  const file = named(path)
  const inName = [...path.matchAll(suspiciousInCode)].flatMap(({ 1: found }) =>
    found === undefined ? [] : [codeOf(found)],
  )
  const notes: FileNote[] = []
  const ofFile = (message: string) => notes.push({ place: null, message: `${file}: ${message}` })
  if (inName.length > 0) ofFile(`the name of this file has ${inName.join(', ')}, which is not seen`)
  const text = typeof content === 'string' ? content : textOf(content)
  if (text === null || PLAIN.test(text)) return notes
  let count = 0
  let line = 1
  let begin = 0
  for (const { 0: all, 1: found, index } of text.matchAll(PROSE.test(path) ? suspicious : suspiciousInCode)) {
    if (all === '\n' || all === '\r\n') {
      line++
      begin = index + all.length
    }
    if (found === undefined || ++count > MOST) continue
    const message = `${codeOf(found)} stands here, which is not seen as what it is`
    notes.push({ place: `${file}:${line}:${index - begin + 1}`, message })
  }
  if (count > MOST) ofFile(`${count - MOST} more such characters`)
  return notes
}

/** Null for what is no text. */
function textOf(content: Uint8Array): string | null {
  if (content.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    return null
  }
}
