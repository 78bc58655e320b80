// The documents, tried as a reader would: every command of README and docs runs in a shell, in order, and every error code is
// explained. A fence that names a file (```yaml greetings/team.yml) is that file. One that cannot run says why not
// (```sh skip REASON), and one that serves (```sh terminal) runs beside what follows.

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseDocument } from 'yaml'
import { discover } from '../lib/agent/catalogue.ts'
import { STATUS } from '../lib/error.ts'
import { type Fence, fencesOf, INSTALLS, readDocument as read } from './support/fences.ts'
import { folder } from './support/folder.ts'
import { freePort } from './support/free-port.ts'
import { endLeftIn, watchHome } from './support/left.ts'
import { environmentAt } from './support/program.ts'

const ROOT = join(import.meta.dir, '..')

/** Why commands of a fence are not run here. */
const REASONS: Readonly<Record<string, string>> = {
  install: 'tests/deploy/install.test.ts installs and removes cadre with them, on a machine that has nothing of it',
  journey: 'tests/deploy/journey.ts does the same with an installed cadre: a hub, a daemon, a dispatch',
  docker: 'needs Docker',
  release: 'tests/attacks/21-release.test.ts makes releases, and verifies one with these commands',
  service: 'tests/deploy/service.test.ts installs services where systemd runs',
  move: 'tests/doubt/backup-home.test.ts moves a home that is known to a hub with these commands',
  completion: 'tests/daemon/completion.test.ts asks the shells themselves',
  migrations: 'writes migrations into the repository',
  realm: 'tests/daemon/realm-triggers-commands.test.ts runs them at a hub',
  files: 'tests/link/artifacts.test.ts has hubs that keep files in a store, and hubs that keep them in a folder',
  audit: 'tests/attacks/19-audit-hub.test.ts exports and verifies',
  drain: 'tests/daemon/drain.test.ts drains daemons in which something runs',
  hubs: 'tests/hub/postgres has several hubs on one database',
  copy: 'tests/doubt has hubs on older copies of their databases',
}

/** Documents whose commands another test runs. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/hub.md': 'tests/hub/walk.test.ts',
  'docs/write-an-agent.md': 'tests/daemon/newcomer.test.ts',
}

const documents = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(ROOT, 'docs')).map(name => `docs/${name}`),
].filter(name => name.endsWith('.md'))

/** A folder that looks like a clone, with a home, a `bun` and a `cadre` of its own. */
function clone() {
  const [work, home, bin] = [folder(), folder(), folder()]
  for (const name of readdirSync(ROOT)) if (!name.startsWith('.')) symlinkSync(join(ROOT, name), join(work, name))
  symlinkSync(process.execPath, join(bin, 'bun'))
  symlinkSync(join(ROOT, 'deploy/cadre'), join(bin, 'cadre'))
  const cadre = join(home, '.cadre')
  mkdirSync(cadre)
  watchHome(cadre)
  return { work, home, bin, cadre }
}

const homes: string[] = []
const shells = new Set<number>()
afterAll(async () => {
  // Of a document that took too long.
  for (const pid of shells) process.kill(-pid, 'SIGKILL')
  for (const home of homes) await endLeftIn(home)
})

async function runs(document: string, fences: readonly Fence[]): Promise<void> {
  const { work, home, bin, cadre } = clone()
  homes.push(cadre)
  for (const { words, text } of fences.filter(({ language }) => language !== 'sh')) {
    const [path] = words
    if (path === undefined) continue
    // What is there is a link to the repository, into which a document would write.
    if (existsSync(join(ROOT, path.split('/')[0]!))) throw new Error(`${document}: ${path} is in the repository`)
    mkdirSync(dirname(join(work, path)), { recursive: true })
    writeFileSync(join(work, path), text)
  }
  const scripts = fences
    .filter(({ language }) => language === 'sh')
    .map(({ words: [how], text }) => (how === 'terminal' ? beside(text) : endings(text)))
  const script = ['set -euo pipefail', "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", ...scripts].join('\n')
  const shell = Bun.spawn(['bash', '-c', script], {
    cwd: work,
    env: {
      ...environmentAt(home),
      PATH: `${bin}:${process.env.PATH}`,
      LANG: 'C.UTF-8',
      WIKI_TOKEN: 'token-of-the-documents',
      CADRE_DAEMON_PORT: String(freePort()),
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  })
  shells.add(shell.pid)
  const [out, error, code] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited])
  shells.delete(shell.pid)
  expect([document, code, code === 0 ? '' : out + error]).toEqual([document, 0, ''])
}

/** A line that says `# ends with 3` must do so. */
function endings(text: string): string {
  return text.replaceAll(/^(.*?)( +# ends with (\d+):.*)$/gm, '{ $1 && exit 1; } || [ $? -eq $3 ]$2')
}

/** Runs one command in the background, which ends with the shell, and what follows begins when it listens. */
function beside(text: string): string {
  return `( exec ${text}) > served &\nuntil grep -q listening served; do sleep 0.1; done`
}

test('each piece of code says what it is, and why if it is not run', () => {
  const strange = documents.flatMap(document =>
    fencesOf(document).filter(({ language, words: [how, why], text }) => {
      if (language === '') return !text.startsWith('-----BEGIN PUBLIC KEY-----')
      const isKnown =
        ['sh', 'yaml', 'json', 'ts', 'lua', 'toml'].includes(language) ||
        (language === 'text' && how?.includes('/')) ||
        (language === 'console' && document in ELSEWHERE)
      return !isKnown || (how === 'skip' && !(why! in REASONS))
    }),
  )
  expect(strange).toEqual([])
  const said = documents.flatMap(fencesOf).flatMap(({ words: [how, why] }) => (how === 'skip' ? [why!] : []))
  expect(Object.keys(REASONS).filter(why => !said.includes(why))).toEqual([])
})

describe.each(documents.filter(name => !(name in ELSEWHERE)))('%s', document => {
  const fences = fencesOf(document)

  const skipped = ({ language, words, text }: Fence) =>
    language === 'sh' && (words[0] === 'skip' || text.startsWith(INSTALLS))
  const live = fences.filter(fence => fence.language === 'sh' && !skipped(fence))
  if (live.length === 0) return
  test('every command runs', () => {
    const run = fences.filter(fence => (fence.language === 'sh' || fence.words.length > 0) && !skipped(fence))
    return runs(document, run)
  }, 120_000)
})

test.each(Object.entries(ELSEWHERE))('the commands of %s are run by %s', (document, file) => {
  expect(read(file)).toContain(document.split('/').at(-1)!)
})

test('what people want to do is a heading, to which the README leads', () => {
  const wanted = [
    ...['run nightly', 'run on a webhook', 'be told when a run fails', 'staging and production'],
    ...['share with a colleague', 'back up and move', 'upgrade', 'uninstall'],
  ]
  const [headings, readme] = [documents.flatMap(headingsOf), read('README.md').toLowerCase()]
  expect(wanted.filter(words => !headings.includes(words))).toEqual([])
  expect(wanted.filter(words => !readme.includes(words))).toEqual([])
})

test('every piece of YAML can be read', () => {
  const pieces = documents.flatMap(fencesOf).filter(({ language }) => language === 'yaml')
  expect(pieces.length).toBeGreaterThan(10)
  for (const { text } of pieces) expect(parseDocument(text).errors.map(({ message }) => message)).toEqual([])
})

test('the table of agents in the README has all of them', () => {
  const [, table] = /\| agent .*\n\|[ -]+\|[ -]+\|\n((?:\|.*\n)+)/.exec(read('README.md'))!
  const named = table!
    .split('\n')
    .flatMap(line => [...(line.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name!))
  const there = readdirSync(join(ROOT, 'agents')).map(file => file.replace(/\.ts$/, ''))
  expect(named.sort()).toEqual(there.sort())
})

test('the documents name the agents that take events', async () => {
  const catalogue = await discover({ home: folder() })
  const able = catalogue.names().filter(name => catalogue.get(name)?.notify)
  const named = (text: string) => Array.from(text.matchAll(/`(\w+)`/g), ([, name]) => name!)
  const team = /^The agents (.*) take `notify`/m.exec(read('docs/write-a-team.md'))?.[1]
  const agent = /handles the events\s+of runs, as in (.*)\./.exec(read('docs/write-an-agent.md'))?.[1]
  expect([named(team ?? ''), named(agent ?? '')]).toEqual([able, able])
})

test('every link between the documents leads somewhere', () => {
  for (const document of documents) {
    const links = read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)/g)
    for (const [, path, anchor] of links) {
      const target = path === '' ? document : join(dirname(document), path!)
      const text = target.endsWith('.md') ? read(target) : null
      if (text === null) continue
      const headings = headingsOf(target).map(title => `#${slug(title)}`)
      if (anchor) expect([document, anchor, headings.includes(anchor)]).toEqual([document, anchor, true])
    }
  }
})

const headingsOf = (document: string): string[] =>
  Array.from(read(document).matchAll(/^#+ (.*)$/gm), ([, title]) => title!.toLowerCase())

/** The anchor that GitHub makes of a heading. */
const slug = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

describe('docs/troubleshoot.md', () => {
  const text = read('docs/troubleshoot.md')
  const rowsOf = (heading: string) => {
    const section = text.split(`\n## ${heading}\n`)[1]!.split('\n## ')[0]!
    return Array.from(section.matchAll(/^\| `([a-z_]+)` +\| (.*) \|$/gm), ([, code, rest]) => [code!, rest!] as const)
  }

  test('has every code of calls, with its status', () => {
    const rows = rowsOf('Calls').map(([code, rest]) => [code, Number(rest.split(' ')[0])])
    expect(Object.fromEntries(rows)).toEqual(STATUS)
    expect(rows.length).toBe(Object.keys(STATUS).length)
  })

  test('has every code of phases, and no other', async () => {
    expect(rowsOf('Phases').map(([code]) => code)).toEqual(await phaseCodes())
  })
})

/** The codes that agents and the engine give to errors of phases, from their sources. */
async function phaseCodes(): Promise<string[]> {
  const codes = new Set<string>()
  for (const pattern of ['lib/{agent,run,vendors}/**/*.ts', 'agents/*.ts']) {
    for (const file of new Bun.Glob(pattern).scanSync(ROOT)) {
      const source = read(file)
      const given = Array.from(source.matchAll(/\bcode: ([^,\n}]*)/g), ([, expression]) => expression!)
      const tables = [
        /\bcode = '([a-z_]+)'/g,
        /\bcode = .*\?\? '([a-z_]+)'/g,
        /^\s*\[?\/.*\/[a-z]*,\s*'([a-z_]+)'/gm,
        /^\s*\d{3}: '([a-z_]+)',/gm,
        /\bfail\(\s*'([a-z_]+)'/g,
      ]
      for (const quoted of given.flatMap(each => [...each.matchAll(/'([a-z_]+)'/g)])) codes.add(quoted[1]!)
      for (const form of tables) for (const found of source.matchAll(form)) codes.add(found[1]!)
    }
  }
  // Kinds of files that a model can be sent, in a table of the same form.
  for (const kind of ['image', 'pdf']) codes.delete(kind)
  return [...codes].sort()
}
