// Whether a statement of MySQL or MariaDB may be a query. A read-only transaction lets through what changes no table:
// files on the server, its settings, DROP. So a query begins with a word that reads, and two things are refused by name:
// INTO, and comments that are executed.
//
// Which text is quoted depends on the server's `sql_mode`. A statement has to be harmless in each of them.
// https://dev.mysql.com/doc/refman/8.4/en/select-into.html  https://mariadb.com/kb/en/comment-syntax/

import { type Escapes, tokensOf } from './tokens.ts'

const READS = ['SELECT', 'WITH', 'VALUES', 'TABLE', 'SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN']
/** The word INTO, also where a number or `\N` ends in front of it without a space, as in `1e0INTO`. */
const INTO = /(?:^|\d|^N)INTO$/i
const EXECUTED = /^\/\*M?!/i
const MODES: readonly Escapes[] = [
  { single: true, double: true },
  { single: true, double: false },
  { single: false, double: true },
  { single: false, double: false },
]

/** What makes a statement more than a query, in words that continue "`sql`"; null if nothing does. */
export function whyNoQuery(sql: string): string | null {
  // Without a backslash the modes do not differ.
  for (const mode of sql.includes('\\') ? MODES : MODES.slice(0, 1)) {
    const problem = problemIn(sql, mode)
    if (problem !== null) return problem
  }
  return null
}

function problemIn(sql: string, mode: Escapes): string | null {
  let isBegun = false
  for (const { kind, text, isOpen } of tokensOf(sql, 'mysql', mode)) {
    if (kind === 'comment') {
      if (EXECUTED.test(text)) return 'has a comment that is executed (/*! … */)'
      if (isOpen && text.startsWith('/*')) return 'has a comment that does not end'
      continue
    }
    if (!isBegun && text !== '(') {
      isBegun = true
      if (!READS.includes(text.toUpperCase())) return `must begin with one of ${READS.join(', ')}`
    }
    if (kind === 'word' && INTO.test(text)) return 'has INTO, which writes: put a name in backticks'
  }
  return isBegun ? null : 'is empty'
}
