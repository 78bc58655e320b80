// The tokens of a statement of SQL, by the lexical rules of each database. They say where `:name` is a parameter and
// what an error should point at. Where a statement ends, the database decides itself.
//
// https://www.postgresql.org/docs/current/sql-syntax-lexical.html  https://dev.mysql.com/doc/refman/8.4/en/language-structure.html
// https://sqlite.org/lang_expr.html

export type Dialect = 'postgres' | 'mysql' | 'sqlite'

export interface Token {
  /** `name` is `:name`; `other` is one character, or `::`. White space is no token. */
  kind: 'comment' | 'quoted' | 'word' | 'name' | 'other'
  at: number
  text: string
  /** Whether the statement ended inside of the comment or the quotes. */
  isOpen: boolean
}

/** Which quotes of MySQL have backslashes in them. It depends on `sql_mode`: NO_BACKSLASH_ESCAPES and ANSI_QUOTES. */
export interface Escapes {
  single: boolean
  double: boolean
}

const SPACE = /[\s\0]*/y
const NAME = /:[A-Za-z_]\w*/y
/** In PostgreSQL and SQLite every character that is not ASCII belongs to words, also one that Unicode calls a space. */
const WORD = {
  postgres: /[A-Za-z_\x80-\uffff][\w$\x80-\uffff]*/y,
  mysql: /[\w$\x80-\uffff]+/y,
  sqlite: /[\w$\x80-\uffff]+/y,
}
const LINE_COMMENT = {
  postgres: /--[^\n\r]*/y,
  mysql: /(?:--(?=[\0- \x7f]|$)|#)[^\n]*/y,
  sqlite: /--[^\n]*/y,
}
const DOLLAR_TAG = /\$(?:[A-Za-z_\x80-\uffff][\w\x80-\uffff]*)?\$/y
const CLOSING: Readonly<Record<string, string>> = { "'": "'", '"': '"', '`': '`', '[': ']' }
const QUOTES = { postgres: `'"`, mysql: `'"\``, sqlite: `'"\`[` }

/** The tokens of a text. What is not closed extends to the end of the text. It takes time in proportion to the text. */
export function* tokensOf(
  sql: string,
  dialect: Dialect,
  escapes: Escapes = { single: dialect === 'mysql', double: dialect === 'mysql' },
): Generator<Token, void> {
  for (let at = endOf(SPACE, sql, 0); at < sql.length; ) {
    const [kind, end] = next(sql, at, dialect, escapes)
    yield { kind, at, text: sql.slice(at, end === -1 ? undefined : end), isOpen: end === -1 }
    if (end === -1) return
    at = endOf(SPACE, sql, end)
  }
}

function next(sql: string, at: number, dialect: Dialect, { single, double }: Escapes): [Token['kind'], end: number] {
  const first = sql[at]!
  if (first === '-' || first === '#') {
    const line = endOf(LINE_COMMENT[dialect], sql, at)
    return line > at ? ['comment', line] : ['other', at + 1]
  }
  if (first === '/' && sql[at + 1] === '*')
    return ['comment', dialect === 'postgres' ? nested(sql, at) : after(sql, '*/', at + 2)]
  if (QUOTES[dialect].includes(first)) {
    const escaped = (first === "'" && single) || (first === '"' && double)
    return ['quoted', closed(sql, at, escaped)]
  }
  if (dialect === 'postgres') {
    if ((first === 'e' || first === 'E') && sql[at + 1] === "'") return ['quoted', closed(sql, at + 1, true)]
    const tag = first === '$' ? endOf(DOLLAR_TAG, sql, at) : at
    if (tag > at) return ['quoted', after(sql, sql.slice(at, tag), tag)]
  }
  if (first === ':') {
    if (sql[at + 1] === ':') return ['other', at + 2]
    const name = endOf(NAME, sql, at)
    return name > at ? ['name', name] : ['other', at + 1]
  }
  const word = endOf(WORD[dialect], sql, at)
  return word > at ? ['word', word] : ['other', at + 1]
}

function endOf(pattern: RegExp, sql: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(sql) ? pattern.lastIndex : at
}

/** The end of `mark`, which is looked for from an offset on; -1 where there is none. */
function after(sql: string, mark: string, from: number): number {
  const found = sql.indexOf(mark, from)
  return found === -1 ? -1 : found + mark.length
}

/** The end of what is quoted, in which the closing character stands twice for itself; brackets have no such form. */
function closed(sql: string, at: number, escaped: boolean): number {
  const quote = CLOSING[sql[at]!]!
  for (let end = at + 1; end < sql.length; end++) {
    if (escaped && sql[end] === '\\') end++
    else if (sql[end] === quote) {
      if (quote === ']' || sql[end + 1] !== quote) return end + 1
      end++
    }
  }
  return -1
}

/** The end of a comment of PostgreSQL, in which others are nested. */
function nested(sql: string, at: number): number {
  const marks = /\/\*|\*\//g
  marks.lastIndex = at
  let depth = 0
  for (let mark = marks.exec(sql); mark; mark = marks.exec(sql)) {
    depth += mark[0] === '/*' ? 1 : -1
    if (depth === 0) return marks.lastIndex
  }
  return -1
}
