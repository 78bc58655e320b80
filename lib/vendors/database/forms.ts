// The JSON forms of database values. They are exact: what a JSON number cannot hold is a text.
//
//   whole numbers         a number up to 2^53, else a text of digits
//   decimals, money       a text, as the database writes it
//   floating point        a number; NaN and the infinities are texts
//   truth values          true or false (MySQL and SQLite have none: 1 or 0)
//   dates and times       ISO 8601: 2026-01-31, 2026-01-31T10:00:00.5; with a zone in UTC: 2026-01-31T10:00:00Z
//   json                  the value itself
//   bytes                 base64
//   arrays of PostgreSQL  lists
//   anything else         the text of the database; NULL is null

import type { Json } from '../../json.ts'

type Form = (text: string) => Json

export function wholeNumber(text: string): Json {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text
}

export function floatNumber(number: number): Json {
  return Number.isFinite(number) ? number : String(number)
}

const asText: Form = text => text
const moment: Form = text => text.replace(' ', 'T')
/** The session's zone is UTC, so the offset is always zero. */
const instant: Form = text => moment(text.replace(/\+00$/, 'Z'))
const bytes: Form = text => Buffer.from(text.slice(2), 'hex').toString('base64')
const float: Form = text => floatNumber(Number(text))

/** By the OID of the type: PostgreSQL's pg_type.dat. Types that are not here are texts. */
const POSTGRES = new Map<number, Form>([
  [16, text => text === 't'],
  [17, bytes],
  [20, wholeNumber],
  [21, Number],
  [23, Number],
  [26, Number],
  [700, float],
  [701, float],
  [114, text => JSON.parse(text)],
  [3802, text => JSON.parse(text)],
  [1114, moment],
  [1184, instant],
])

/** The types of the elements of arrays, by the OID of the array. Elements of other arrays are texts. */
const ELEMENTS = new Map<number, number>([
  ...([
    [1000, 16],
    [1001, 17],
    [1005, 21],
    [1007, 23],
    [1016, 20],
    [1021, 700],
    [1022, 701],
    [1028, 26],
  ] as const),
  ...([
    [199, 114],
    [3807, 3802],
    [1115, 1114],
    [1185, 1184],
    [1182, 1082],
    [1183, 1083],
    [1231, 1700],
  ] as const),
  ...([
    [1009, 25],
    [1014, 1042],
    [1015, 1043],
    [2951, 2950],
    [1187, 1186],
    [1270, 1266],
    [1041, 869],
  ] as const),
])

/** The form of a column of PostgreSQL, whose values arrive as texts. */
export function postgresForm(type: number): Form {
  const element = ELEMENTS.get(type)
  return element === undefined ? (POSTGRES.get(type) ?? asText) : text => arrayOf(text, postgresForm(element))
}

/** Reads an array's text: `{1,NULL,"a \" b",{…}}`, which a range of indices may precede. */
function arrayOf(text: string, form: Form): Json {
  const tokens = text.slice(text.indexOf('{')).matchAll(/[{}]|,|"((?:[^"\\]|\\[\s\S])*)"|[^{},]+/g)
  const open: Json[][] = [[]]
  for (const [token, quoted] of tokens) {
    if (token === ',') continue
    if (token === '{') open.push([])
    else if (token === '}') {
      const list = open.pop()!
      open.at(-1)!.push(list)
    } else if (quoted !== undefined) open.at(-1)!.push(form(quoted.replace(/\\([\s\S])/g, '$1')))
    else open.at(-1)!.push(token === 'NULL' ? null : form(token))
  }
  return open[0]![0] ?? []
}

const MYSQL_DATE = 10
const MYSQL_DATETIME = 12
const MYSQL_BIGINT = 8

/** The form of a value of MySQL, which Bun's client has read. It keeps milliseconds of a time. */
export function mysqlValue(value: unknown, type: number): Json {
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) return null
    const text = value.toISOString().replace(/\.000Z$/, 'Z')
    if (type === MYSQL_DATE) return text.slice(0, 10)
    return type === MYSQL_DATETIME ? text.slice(0, -1) : text
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (typeof value === 'number') return floatNumber(value)
  if (typeof value === 'bigint' || (typeof value === 'string' && type === MYSQL_BIGINT)) return wholeNumber(`${value}`)
  return (value ?? null) as Json
}

/** The form of a value of SQLite, whose whole numbers are read as `bigint`. */
export function sqliteValue(value: unknown): Json {
  if (typeof value === 'bigint') return wholeNumber(String(value))
  if (typeof value === 'number') return floatNumber(value)
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : (value as Json)
}
