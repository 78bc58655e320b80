// Changes one line of the product at a time, and runs the tests that execute that line: bun run mutate
//
//   bun run mutate --index                 measures which test executes which line (once for a state of lib; minutes)
//   bun run mutate --seed 7 --count 200    mutants 0 to 199 of the order that this seed gives
//   bun run mutate --seed 7 --from 120     goes on with number 120; what was tried before is not tried again
//   bun run mutate --seed 7 --again 3,18   tries these numbers once more, such as survivors with a larger budget
//
// A mutant is caught when a test or the compiler fails. One that is not caught shows a promise without a test, or a line
// without a purpose. Options: --rooms core,steps,access,wire,team,triggers, --lanes 2, --budget 90 (seconds of tests for a mutant).

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { $, Glob } from 'bun'
import timings from './timings.json'

const ROOT = join(import.meta.dir, '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'mutate')
/** Lines and verdicts hold as long as lib does not change. */
const LIB = (await $`git rev-parse --short HEAD:lib`.cwd(ROOT).text()).trim()
const INDEX = join(CACHE, `index-${LIB}.json`)

/** The folders whose lines are changed. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  core: ['lib/run/core'],
  steps: ['lib/run/steps'],
  access: ['lib/hub/access', 'lib/daemon/access'],
  wire: ['lib/wire'],
  team: ['lib/team'],
  triggers: ['lib/triggers'],
}

/** The tests that are asked. Those that kill processes at random say little about one line, and take long. */
const TESTS = ['tests/*.test.ts', 'tests/{run,team,triggers,hub,http,daemon,link,doubt,attacks}/**/*.test.ts']
const TOO_SLOW_MS = 30_000

const CHANGES: readonly (readonly [RegExp, string])[] = [
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/\.some\(/g, '.every('],
  [/\.every\(/g, '.some('],
  [/Math\.min\(/g, 'Math.max('],
  [/Math\.max\(/g, 'Math.min('],
  [/(?<=[(\s])!(?=[a-z(])/g, ''],
  [/(?<=\bif \()(?=.)/g, 'false && '],
  [/\b(?:[1-9]\d*(?:_\d+)*)\b(?!\.)/g, '0'],
  [/ \?\? [^,)}\]]+(?=[,)}\]]|$)/g, ''],
  [/^\s+(?:await )?[a-z][\w.?#]*\([^{}]*\)$/g, ''],
]

interface Mutant {
  path: string
  line: number
  from: string
  to: string
}

const { values: flags } = parseArgs({
  options: {
    index: { type: 'boolean' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    count: { type: 'string', default: '200' },
    lanes: { type: 'string', default: '2' },
    budget: { type: 'string', default: '90' },
    again: { type: 'string' },
    rooms: { type: 'string', default: Object.keys(ROOMS).join() },
  },
})
const chosen = flags.rooms.split(',').flatMap(room => ROOMS[room] ?? fail(`there is no room ${room}`))
const folders = Object.values(ROOMS).flat()

if (flags.index || !existsSync(INDEX)) await writeIndex()
if (!flags.index) await tryMutants()

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}

/** The text with the insides of comments, strings and patterns as spaces, so that only code is changed. */
function codeOf(text: string): string {
  const parts =
    /\/\/.*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(=,:!&|?[] ?)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g
  return text.replaceAll(parts, part => part.replaceAll(/[^\n]/g, ' '))
}

/** All mutants of the rooms, in the order that the seed gives. */
function mutants(): Mutant[] {
  const transpiler = new Bun.Transpiler({ loader: 'ts' })
  const found: Mutant[] = []
  for (const folder of chosen) {
    for (const path of [...new Glob('**/*.ts').scanSync(join(ROOT, folder))].sort().map(each => join(folder, each))) {
      const text = readFileSync(join(ROOT, path), 'utf8')
      const lines = text.split('\n')
      codeOf(text)
        .split('\n')
        .forEach((code, at) => {
          if (/^\s*(?:import|export \{|export type|export \*|type |interface )/.test(code)) return
          for (const [pattern, replacement] of CHANGES) {
            for (const match of code.matchAll(pattern)) {
              const line = lines[at]!
              const to = line.slice(0, match.index) + replacement + line.slice(match.index + match[0].length)
              if (to !== line) found.push({ path, line: at + 1, from: line, to })
            }
          }
        })
    }
  }
  const random = randomFrom(Number(flags.seed))
  for (let at = found.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    ;[found[at], found[other]] = [found[other]!, found[at]!]
  }
  // Those that are no program, or that change only types, are none.
  return found.filter(mutant => {
    try {
      const before = readFileSync(join(ROOT, mutant.path), 'utf8')
      return transpiler.transformSync(mutated(before, mutant)) !== transpiler.transformSync(before)
    } catch {
      return false
    }
  })
}

function mutated(text: string, { line, to }: Mutant): string {
  return text
    .split('\n')
    .with(line - 1, to)
    .join('\n')
}

/** mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** By file and line of the product: the tests that execute it, as numbers in `tests`. */
interface Index {
  tests: { path: string; ms: number }[]
  lines: Record<string, Record<string, number[]>>
}

/** Measures the tests that the index lacks, fast ones first, and keeps each at once: this may be stopped and called again. */
async function writeIndex(): Promise<void> {
  const times: Record<string, number> = timings.files
  const index: Index = existsSync(INDEX) ? await Bun.file(INDEX).json() : { tests: [], lines: {} }
  const paths = TESTS.flatMap(glob => [...new Glob(glob).scanSync(ROOT)])
    .filter(path => (times[path] ?? 0) < TOO_SLOW_MS && !index.tests.some(test => test.path === path))
    .sort((a, b) => (times[a] ?? 0) - (times[b] ?? 0))
  mkdirSync(CACHE, { recursive: true })
  await inLanes(paths, async (path, copy) => {
    const began = performance.now()
    const report = join(copy.temporary, 'coverage')
    const passed = await runTest(copy, path, 180_000, [
      '--coverage',
      '--coverage-reporter=lcov',
      `--coverage-dir=${report}`,
    ])
    const lcov = join(report, 'lcov.info')
    if (!passed) console.log(`${path} does not pass unchanged and is left out`)
    if (passed && existsSync(lcov)) note(index, path, performance.now() - began, readFileSync(lcov, 'utf8'))
    rmSync(report, { recursive: true, force: true })
    writeFileSync(`${INDEX}.new`, JSON.stringify(index))
    renameSync(`${INDEX}.new`, INDEX)
  })
  console.log(`${index.tests.length} files of tests execute lines of ${Object.keys(index.lines).length} files`)
}

function note(index: Index, path: string, ms: number, lcov: string): void {
  const number = index.tests.push({ path, ms }) - 1
  let source = ''
  for (const row of lcov.split('\n')) {
    source = /^SF:(.*)$/.exec(row)?.[1] ?? source
    const [, line, times] = /^DA:(\d+),(\d+)/.exec(row) ?? []
    if (line === undefined || times === '0' || !folders.some(folder => source.startsWith(`${folder}/`))) continue
    const lines = index.lines[source] ?? {}
    index.lines[source] = lines
    lines[line] = [...(lines[line] ?? []), number]
  }
}

/** A copy of the checkout in which one lane changes lines. */
interface Copy {
  root: string
  temporary: string
}

async function inLanes<T>(work: readonly T[], each: (one: T, copy: Copy) => Promise<void>): Promise<void> {
  const rest = work.values()
  const tracked = (await $`git ls-files -z`.cwd(ROOT).text()).split('\0').filter(Boolean)
  const lane = async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cadre-mutate-'))
    const copy = { root: join(folder, 'cadre'), temporary: join(folder, 'tmp') }
    mkdirSync(copy.temporary)
    for (const path of tracked) {
      mkdirSync(dirname(join(copy.root, path)), { recursive: true })
      cpSync(join(ROOT, path), join(copy.root, path))
    }
    symlinkSync(join(ROOT, 'node_modules'), join(copy.root, 'node_modules'))
    try {
      for (const one of rest) await each(one, copy)
    } finally {
      killBelow(folder)
      rmSync(folder, { recursive: true, force: true })
    }
  }
  await Promise.all(Array.from({ length: Number(flags.lanes) }, lane))
}

async function runTest(
  { root, temporary }: Copy,
  path: string,
  limitMs: number,
  options: string[] = ['--bail'],
): Promise<boolean> {
  const test = Bun.spawn(['bun', 'test', ...options, path], {
    cwd: root,
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'ignore', 'ignore'],
    detached: true,
  })
  const timer = setTimeout(() => process.kill(-test.pid, 'SIGKILL'), limitMs)
  const code = await test.exited
  clearTimeout(timer)
  killBelow(temporary)
  return code === 0
}

/** Ends what tests left running. proc(5), so on Linux only. */
function killBelow(folder: string): void {
  for (const pid of existsSync('/proc') ? readdirSync('/proc').filter(name => /^\d+$/.test(name)) : []) {
    try {
      const isTheirs =
        readlinkSync(`/proc/${pid}/cwd`).startsWith(folder) ||
        readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder)
      if (isTheirs && Number(pid) !== process.pid) process.kill(Number(pid), 'SIGKILL')
    } catch {}
  }
}

interface Verdict extends Mutant {
  number: number
  verdict: string
}

async function tryMutants(): Promise<void> {
  const index: Index = await Bun.file(INDEX).json()
  const journal = join(CACHE, `${flags.rooms}-seed-${flags.seed}-${LIB}.jsonl`)
  const known = existsSync(journal) ? (Bun.JSONL.parse(readFileSync(journal, 'utf8')) as Verdict[]) : []
  const from = Number(flags.from)
  const again = flags.again?.split(',').map(Number)
  const asked = mutants()
    .map((mutant, number) => ({ ...mutant, number }))
    .filter(({ number }) => again?.includes(number) ?? (number >= from && number < from + Number(flags.count)))
  const done = new Map(again ? [] : known.map(verdict => [verdict.number, verdict]))
  await inLanes(
    asked.filter(({ number }) => !done.has(number)),
    async (mutant, copy) => {
      const file = join(copy.root, mutant.path)
      const before = readFileSync(file, 'utf8')
      await Bun.write(file, mutated(before, mutant))
      const verdict = { ...mutant, verdict: await judge(index, mutant, copy) }
      await Bun.write(file, before)
      done.set(mutant.number, verdict)
      mkdirSync(CACHE, { recursive: true })
      await $`echo ${JSON.stringify(verdict)} >> ${journal}`
      console.log(`${mutant.number} ${verdict.verdict}  ${mutant.path}:${mutant.line}`)
      if (verdict.verdict.startsWith('SURVIVED')) console.log(`  - ${mutant.from.trim()}\n  + ${mutant.to.trim()}`)
    },
  )
  const verdicts = asked.flatMap(({ number }) => done.get(number) ?? [])
  const survivors = verdicts.filter(({ verdict }) => verdict.startsWith('SURVIVED'))
  for (const { number, path, line, from, to, verdict } of survivors) {
    console.log(`#${number} ${path}:${line} ${verdict}\n  - ${from.trim()}\n  + ${to.trim()}`)
  }
  const byTypes = verdicts.filter(({ verdict }) => verdict === 'caught by the types').length
  const byTests = verdicts.length - survivors.length - byTypes
  const share = ((100 * survivors.length) / verdicts.length).toFixed(1)
  console.log(
    `${verdicts.length} mutants: tests caught ${byTests}, the types ${byTypes}; ${survivors.length} survived (${share} %)`,
  )
}

async function judge({ tests, lines }: Index, { path, line }: Mutant, copy: Copy): Promise<string> {
  const asked = (lines[path]?.[line] ?? []).map(number => tests[number]!).sort((a, b) => a.ms - b.ms)
  let left = Number(flags.budget) * 1_000
  let count = 0
  for (const test of asked) {
    left -= test.ms
    if (left < 0 && count > 0) break
    count++
    if (!(await runTest(copy, test.path, 20_000 + 5 * test.ms))) return `caught by ${test.path}`
  }
  // The compiler remembers what it found in the copy, and checks again what the change reaches.
  const remembers = ['--incremental', '--tsBuildInfoFile', join(copy.root, '..', 'types.json')]
  const types = await $`${join(ROOT, 'node_modules/.bin/tsc')} --noEmit --checkers 1 ${remembers}`
    .cwd(copy.root)
    .quiet()
    .nothrow()
  if (types.exitCode !== 0) return 'caught by the types'
  return count === 0 ? 'SURVIVED: no test executes the line' : `SURVIVED ${count} of ${asked.length} files of tests`
}
