// The variables of the environment that hub and daemon read, from the code that each of them imports. A name counts where
// the code has it as a property, as a key or as a whole text; comments and sentences in messages do not count.

import { dirname, join, resolve } from 'node:path'
import { QUOTAS } from '../../lib/wire/records/quotas.ts'
import { readDocument } from './fences.ts'

const ROOT = resolve(import.meta.dir, '../..')

/** Names in the code that nobody sets for a hub or a daemon, and why. */
const OTHERS: Readonly<Record<string, string>> = {
  CADRE_BUN: 'given to commands of teams',
  CADRE_COMMAND: 'a constant of the pages, set when they are built',
  CADRE_CONTAINER: 'says that the program is in the image, which sets it',
  CADRE_FAILPOINT: 'for tests',
  CADRE_FILES: 'given to commands of teams',
  CADRE_NO_JSON: 'a code of errors',
  CADRE_OUT: 'given to commands of teams',
  CADRE_OUTPUT: 'given to commands of teams',
  CADRE_RESULT: 'given to commands of teams',
  CADRE_RUN_ID: 'given to commands of teams',
}

/** Beginnings of names that the code completes. */
const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  CADRE_QUOTA_: Object.keys(QUOTAS).map(name => name.toUpperCase()),
  // Inside the sandbox of a command.
  CADRE_VAR_: [],
  OTEL_EXPORTER_OTLP_: ['', 'TRACES_', 'LOGS_'].flatMap(signal =>
    [
      'ENDPOINT',
      'HEADERS',
      'TIMEOUT',
      'COMPRESSION',
      'PROTOCOL',
      'CERTIFICATE',
      'CLIENT_CERTIFICATE',
      'CLIENT_KEY',
    ].map(option => signal + option),
  ),
}

const compilers = { ts: new Bun.Transpiler({ loader: 'ts' }), tsx: new Bun.Transpiler({ loader: 'tsx' }) }

/** What `program` reads, sorted. */
export async function variablesOf(program: 'hub.ts' | 'daemon.ts'): Promise<string[]> {
  const found = new Set<string>()
  const seen = new Set<string>()
  const open = [program as string]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file) || !/\.tsx?$/.test(file)) continue
    seen.add(file)
    const { names, imports } = await read(file)
    for (const name of names) found.add(name)
    open.push(...imports)
  }
  return [...found].sort()
}

/** What any code of the product reads, agents and processes of their own included, sorted. */
export async function allVariables(): Promise<string[]> {
  const files = Array.from(new Bun.Glob('{agents,db,lib}/**/*.{ts,tsx}').scanSync(ROOT))
  const each = await Promise.all(files.map(read))
  return [...new Set(each.flatMap(({ names }) => names))].sort()
}

async function read(file: string): Promise<{ names: string[]; imports: string[] }> {
  const text = (await Bun.file(join(ROOT, file)).text()).replace(/^#!.*/, '')
  const compiler = compilers[file.endsWith('x') ? 'tsx' : 'ts']
  const imports = compiler.scanImports(text).filter(({ path }) => path.startsWith('.'))
  return {
    names: namesIn(compiler.transformSync(text), file).filter(name => !(name in OTHERS)),
    imports: imports.map(({ path }) => join(dirname(file), path)),
  }
}

function namesIn(code: string, file: string): string[] {
  const whole = code.matchAll(/\.((?:CADRE|AWS|OTEL)_\w+)|\b((?:CADRE|AWS|OTEL)_\w+):|"((?:CADRE|AWS|OTEL)_\w+)"/g)
  const begun = code.matchAll(/`((?:CADRE|AWS|OTEL)_\w+_)\$\{/g)
  return [
    ...Array.from(whole, ([, property, key, text]) => (property ?? key ?? text)!),
    ...Array.from(begun, ([, beginning]) => beginning!).flatMap(beginning => {
      const ends = FAMILIES[beginning]
      if (!ends) throw new Error(`${file}: say in FAMILIES which names begin with ${beginning}`)
      return ends.map(end => beginning + end)
    }),
  ]
}

/** The names in the tables of docs/variables.md below these headings, sorted. */
export function documentedVariables(...headings: string[]): string[] {
  const sections = readDocument('docs/variables.md').split(/^## /m)
  const rows = headings.map(heading => sections.find(section => section.startsWith(`${heading}\n`))!)
  return rows.flatMap(text => Array.from(text.matchAll(/^\| `(\w+)` +\|/gm), ([, name]) => name!)).sort()
}
