// Hints for expressions that are not CEL: what to write instead of the syntax of other languages.

export interface Mistake {
  /** Index into the expression. */
  offset: number
  message: string
  /** The message says what was probably meant. */
  isCorrected?: true
}

/** Maximum length of a message, which may repeat data. */
const MAX_MESSAGE_LENGTH = 500

const FOREIGN: readonly [pattern: RegExp, message: string][] = [
  [/[!=]==/, '`===` and `!==` are written `==` and `!=`'],
  [/(?<![=!<>])=(?!=)/, 'a comparison is written `==`'],
  [/<>/, '`<>` is written `!=`'],
  [/\?\?/, '`a.b ?? c` is written `or(a.b, c)`'],
  [/(?<![.\w])and\b/i, '`and` is written `&&`'],
  [/(?<![.\w])or\b(?!\()/i, '`or` is written `||`'],
  [/(?<![.\w])not\b/i, "`not x` is written `!x`, in quotes: '!x'"],
  [/(?<!\|)\|(?!\|)/, 'there are no filters: call a function, such as `size(x)` or `x.join(", ")`'],
  [/\$/, 'a name is written without `$`'],
  [/`/, 'a text stands in single or double quotes'],
]

const NEWLINE =
  'a text in quotes cannot go over several lines. Between double quotes, YAML turns `\\n` into a new line before the expression is read: write `\\\\n` there, or put the whole value into single quotes or after `|`'

/**
 * The expression with its quoted texts blanked out, so that a search finds only characters of the expression itself.
 */
export function withoutTexts(text: string): string {
  return text.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, quoted => ' '.repeat(quoted.length))
}

/** The mistake in a text that CEL cannot parse: a hint about what was probably meant, or else the parser's message. */
export function explain(text: string, mistake: Mistake): Mistake {
  if (mistake.message.startsWith('Newlines not allowed')) return { ...mistake, message: NEWLINE }
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

const BRANCHES = /^Ternary branches must have the same type, got '(.*)' and '(.*)'$/

/** Adds to `?:` with results of two types how CEL takes them. */
export function inOneType(mistake: Mistake): Mistake {
  const [, ...types] = BRANCHES.exec(mistake.message) ?? []
  if (types.length === 0) return mistake
  const how = types.includes('null') ? 'write `dyn(null)` for the null' : 'put one of them into `dyn(…)`'
  return { ...mistake, message: `${mistake.message}: ${how}` }
}

const OPERATOR = /^no such overload: (?:dyn<)?(\w+).*? ([-+*/%]|[<>]=?) (?:dyn<)?(\w+)/
const NUMBERS = ['int', 'uint', 'double']

/** Adds to an operator between two types how one of them becomes the other. */
export function converted(mistake: Mistake): Mistake {
  const [, left = '', sign, right = ''] = OPERATOR.exec(mistake.message) ?? []
  const ofBoth = (left === 'string' && NUMBERS.includes(right)) || (right === 'string' && NUMBERS.includes(left))
  if (!ofBoth) return mistake
  const how = sign === '+' ? 'put the number into `string(…)`' : 'put the text into `double(…)`'
  return { ...mistake, message: `${mistake.message}: ${how}` }
}

/** Adds to the form of optional values, used for another value, the function that takes any. */
export function notOptional(mistake: Mistake): Mistake {
  if (!/^optional\.or(Value)?\(|^found no matching overload for 'or\(/.test(mistake.message)) return mistake
  return { ...mistake, message: `${mistake.message}: write \`or(a.b, other)\`` }
}

/** How a function is called: alone, or after a type of value or a namespace. */
export type Callable = { name: string; receiverType: string | null }

const NO_OVERLOAD = /^found no matching overload for '([^']*?\.)?(\w+)\((.*)\)'$/

/** Adds to a call that fits no function how the function is called, if the form of the call is the mistake. */
export function inItsForm(mistake: Mistake, callables: () => readonly Callable[]): Mistake {
  const [, receiver, name, given = ''] = NO_OVERLOAD.exec(mistake.message) ?? []
  if (!name || receiver?.endsWith('Namespace.')) return mistake
  const after = callables().flatMap(each => (each.name === name ? [each.receiverType] : []))
  const namespace = after.map(type => /^(\w+)Namespace$/.exec(type ?? '')?.[1]?.toLowerCase()).find(Boolean)
  const isFunction = after.includes(null)
  const isMethod = after.some(type => /^(string|list|map|optional|google)\b/.test(type ?? ''))
  const rest = (receiver ? given : given.replace(/^[^,]*,?/, '')).trim() === '' ? '' : '…'
  const asFunction = `${name}(x${rest && `, ${rest}`})`
  const asMethod = `x.${name}(${rest})`
  const fitting = namespace ? `${namespace}.${asFunction}` : isFunction ? asFunction : asMethod
  const wrong = receiver ? !isMethod : !isFunction
  if (!wrong) return mistake
  return {
    ...mistake,
    message: `${mistake.message}: write \`${fitting}\`, not \`${receiver ? asMethod : asFunction}\``,
  }
}
