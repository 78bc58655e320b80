// What to write instead of what other languages have: for expressions that are no CEL at all.

export interface Mistake {
  /** Into the expression. */
  offset: number
  message: string
}

/** Longest pieces of data that a message repeats. */
const MESSAGE_MOST = 500

const FOREIGN: readonly [pattern: RegExp, message: string][] = [
  [/[!=]==/, '`===` and `!==` are written `==` and `!=`'],
  [/(?<![=!<>])=(?!=)/, 'a comparison is written `==`'],
  [/<>/, '`<>` is written `!=`'],
  [/\?\?/, '`a.b ?? c` is written `a.?b.orValue(c)`'],
  [/(?<![.\w])and\b/i, '`and` is written `&&`'],
  [/(?<![.\w])or\b/i, '`or` is written `||`'],
  [/(?<![.\w])not\b/i, "`not x` is written `!x`, in quotes: '!x'"],
  [/(?<!\|)\|(?!\|)/, 'there are no filters: call a function, such as `size(x)` or `x.join(", ")`'],
  [/\$/, 'a name is written without `$`'],
  [/`/, 'a text stands in single or double quotes'],
]

/** Texts in quotes as blanks, so that only the expression's own signs are found. */
export function withoutTexts(text: string): string {
  return text.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, quoted => ' '.repeat(quoted.length))
}

/** For a text that CEL cannot read: what was meant, or what the parser says. */
export function explain(text: string, mistake: Mistake): Mistake {
  const bare = withoutTexts(text)
  for (const [pattern, message] of FOREIGN) {
    const offset = bare.search(pattern)
    if (offset !== -1) return { offset, message }
  }
  return mistake
}

/** What cel-js throws, without the excerpt that it adds. */
export function mistakeOf(error: unknown): Mistake {
  const { summary, message, range } = error as { summary?: string; message?: string; range?: { start: number } }
  const text = (summary ?? message ?? String(error)).replace(/^Unexpected token: EOF$/, 'the expression ends too early')
  return {
    offset: range?.start ?? 0,
    message: text.length > MESSAGE_MOST ? `${text.slice(0, MESSAGE_MOST)}…` : text,
  }
}
