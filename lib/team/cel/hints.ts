// Hints for expressions that are not CEL: what to write instead of the syntax of other languages.

export interface Mistake {
  /** Index into the expression. */
  offset: number
  message: string
}

/** Maximum length of a message, which may repeat data. */
const MAX_MESSAGE_LENGTH = 500

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

/**
 * The expression with its quoted texts blanked out, so that a search finds only characters of the expression itself.
 */
export function withoutTexts(text: string): string {
  return text.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, quoted => ' '.repeat(quoted.length))
}

/** The mistake in a text that CEL cannot parse: a hint about what was probably meant, or else the parser's message. */
export function explain(text: string, mistake: Mistake): Mistake {
  const bare = withoutTexts(text)
  for (const [pattern, message] of FOREIGN) {
    const offset = bare.search(pattern)
    if (offset !== -1) return { offset, message }
  }
  return mistake
}

/** The mistake in an error of cel-js, without the excerpt that cel-js adds. */
export function mistakeOf(error: unknown): Mistake {
  const { summary, message, range } = error as { summary?: string; message?: string; range?: { start: number } }
  const text = (summary ?? message ?? String(error)).replace(/^Unexpected token: EOF$/, 'the expression ends too early')
  return {
    offset: range?.start ?? 0,
    message: text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}…` : text,
  }
}
