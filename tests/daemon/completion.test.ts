// Completion in the shells themselves: the script is sourced, and what a person would see after Tab is what is compared.

import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { environmentAt } from '../support/program.ts'
import { HELLO } from './teams.ts'

const home = files({
  'teams/hello/team.yml': HELLO,
  'teams/other/deep/team.yml': HELLO,
  'plain/readme.md': '',
  'agents/stock.ts': 'export default 1\n',
})
let runId: string

beforeAll(async () => {
  const { stdout } = await command(['run', 'teams/hello', '--json'], { home })
  runId = JSON.parse(stdout).run_id
  // The scripts call `bun`, as the person did who made them.
  mkdirSync(join(home, 'bin'))
  symlinkSync(process.execPath, join(home, 'bin/bun'))
}, 60_000)

/** Runs a script of a shell. */
async function shell(program: string[], script: string): Promise<string> {
  const file = join(home, 'script')
  writeFileSync(file, script)
  const env: Record<string, string> = { ...environmentAt(home), CADRE_HOME: home, LANG: 'C.UTF-8' }
  env.PATH = `${join(home, 'bin')}:${env.PATH}`
  const child = Bun.spawn([...program, file], { cwd: home, env, stdout: 'pipe', stderr: 'pipe' })
  const [out, error] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(error).toBe('')
  return out
}

const scriptOf = async (name: string) => (await command(['completion', name], { home })).stdout

const CASES = (): [line: string, words: string[], exact?: true][] => [
  ['valid', ['validate'], true],
  ['why ', ['last', runId], true],
  ['run te', ['teams/'], true],
  ['runs de', ['delete'], true],
  ['runs --sta', ['--started-by', '--state'], true],
  ['runs --state compl', ['completed'], true],
  [`--home ${home} tree ${runId.slice(0, 4)}`, [runId], true],
  ['run teams/', ['teams/hello', 'teams/other/'], true],
  ['agents st', ['stock'], true],
  ['agents ', ['exec', 'wiki', 'stock']],
  ['init x --from re', ['release-checklist', 'repo-report'], true],
  ['examples we', ['weekly-metrics'], true],
  ['completion ', ['bash', 'zsh', 'fish'], true],
  ['settings ', ['list', 'get', 'set']],
  ['compl', ['completion'], true],
]

/** How many of them the other shells are asked, because each call takes a fifth of a second. */
const FEW = 3

describe('bash', () => {
  test('completes commands, options, runs, folders and agents', async () => {
    const lines = CASES().map(([line]) => {
      const words = `cadre ${line}`.split(' ')
      const array = words.map(word => `'${word}'`).join(' ')
      return `COMP_WORDS=(${array}); COMP_CWORD=${words.length - 1}; _cadre; echo "\${COMPREPLY[*]}"`
    })
    const said = await shell(['bash', '--norc'], `compopt() { :; }\n${await scriptOf('bash')}\n${lines.join('\n')}\n`)
    const found = said
      .trimEnd()
      .split('\n')
      .map(line => line.split(' '))
    for (const [at, [line, words, exact]] of CASES().entries()) {
      const expected = exact ? words.toSorted() : expect.arrayContaining(words)
      expect([line, found[at]!.toSorted()]).toEqual([line, expected])
    }
  }, 60_000)

  test('leaves names of files to the shell, and says nothing where there is nothing to say', async () => {
    const lines = ['run x --inputs ', 'why zz', 'validate no/such/', 'runs delete x y z '].map(line => {
      const words = `cadre ${line}`.split(' ')
      const array = words.map(word => `'${word}'`).join(' ')
      return `COMP_WORDS=(${array}); COMP_CWORD=${words.length - 1}; _cadre; echo "\${COMPREPLY[*]}|$OPTS"; OPTS=`
    })
    const script = `OPTS=; compopt() { OPTS="$*"; }\n${await scriptOf('bash')}\n${lines.join('\n')}\n`
    expect(await shell(['bash', '--norc'], script)).toBe('|-o default -o filenames\n|\n|\n|\n')
  }, 60_000)

  // What is inserted becomes part of the line that the person sends, so it must mean the name and nothing else.
  test('inserts the name of a folder at a terminal as one word that runs nothing', async () => {
    const names = ['a$(touch${IFS}PWNED)b', 'c;touch PWNED;', 'deep/é$(touch PWNED)', 'o`touch PWNED`']
    const at = files(Object.fromEntries(names.map(name => [`t/${name}/team.yml`, HELLO])))
    const cadre = 'cadre() { printf \'%s\\n\' "$2" >>told; }\n'
    writeFileSync(join(at, 'script'), `${await scriptOf('bash')}\n${cadre}PS1='re''ady '\n`)
    const env = { ...environmentAt(home), PATH: `${join(home, 'bin')}:${process.env.PATH}`, LC_ALL: 'C', TERM: 'dumb' }
    let shown = ''
    const data = (_: unknown, bytes: Uint8Array) => {
      shown += new TextDecoder().decode(bytes)
    }
    const shell = Bun.spawn(['bash', '--norc', '--noprofile', '-i'], { cwd: at, env, terminal: { cols: 200, data } })
    try {
      let lines = 0
      const type = async (line: string) => {
        lines++
        shell.terminal!.write(`${line}\n`)
        await until(() => shown.split('ready ').length > lines, `the prompt after ${line} in ${shown}`)
      }
      await type('source ./script')
      // A folder that is named in part, one of which a part is quoted already, and one behind an open quote.
      for (const word of ['t/a\t', 't/c\t', 't/deep/\t', 't/o\t', 't/a\\$\\(t\t', '"t/a\t"', "'t/o\t'"]) {
        await type(`cadre validate ${word}`)
      }
    } finally {
      shell.kill('SIGKILL')
      await shell.exited
      shell.terminal!.close()
    }
    expect(existsSync(join(at, 'PWNED'))).toBe(false)
    const told = [...names, names[0]].map(name => `t/${name}`)
    expect(readFileSync(join(at, 'told'), 'utf8').split('\n')).toEqual([...told, 't/a', 't/o', ''])
  }, 60_000)

  test('calls a program whose folder has any name', async () => {
    const at = join(folder(), "it's; $(touch PWNED) (here)")
    mkdirSync(at)
    writeFileSync(join(at, 'daemon.ts'), `import ${JSON.stringify(join(import.meta.dir, '../../daemon.ts'))}\n`)
    const made = Bun.spawn([process.execPath, join(at, 'daemon.ts'), 'completion', 'bash'], {
      cwd: home,
      env: { ...environmentAt(home), CADRE_HOME: home },
    })
    const script = `${await made.stdout.text()}\nCOMP_WORDS=(cadre valid); COMP_CWORD=1; _cadre; echo "$COMPREPLY"\n`
    expect(await shell(['bash', '--norc'], script)).toBe('validate\n')
    expect(existsSync(join(home, 'PWNED'))).toBe(false)
  }, 60_000)
})

const zsh = Bun.which('zsh')
test.skipIf(!zsh)(
  'zsh: the script is sound, and offers words with their descriptions',
  async () => {
    const fakes =
      '_describe() { print -rl -- ${(P)3}; }\n_files() { print files; }\ncompadd() { print -rl -- ${@[4,-1]}; }\n'
    const calls = CASES()
      .slice(0, FEW)
      .map(([line]) => {
        const words = `cadre ${line}`.split(' ').map(word => `'${word}'`)
        return `words=(${words.join(' ')}); CURRENT=${words.length}; _cadre; print -r -- ---`
      })
    const script = `compdef() { :; }\n${fakes}${await scriptOf('zsh')}\n${calls.join('\n')}\n`
    const found = (await shell(['zsh', '-f'], script)).split('---\n')
    for (const [at, [line, words]] of CASES().slice(0, FEW).entries()) {
      const offered = found[at]!.split('\n').map(each => each.split(':')[0]!)
      expect([line, offered]).toEqual([line, expect.arrayContaining(words)])
    }
    expect(found[0]).toBe('validate:check a team and everything that it uses\n')
  },
  60_000,
)

const fish = Bun.which('fish')
test.skipIf(!fish)(
  'fish: what `complete -C` answers',
  async () => {
    const calls = CASES()
      .slice(0, FEW)
      .map(([line]) => `complete -C'cadre ${line}'; echo ---`)
    const found = (await shell(['fish', '--no-config'], `${await scriptOf('fish')}\n${calls.join('\n')}\n`)).split(
      '---\n',
    )
    for (const [at, [line, words]] of CASES().slice(0, FEW).entries()) {
      const offered = found[at]!.split('\n').map(each => each.split('\t')[0]!)
      expect([line, offered]).toEqual([line, expect.arrayContaining(words)])
    }
  },
  60_000,
)
if (!zsh || !fish) process.stderr.write('zsh or fish is not installed: its completion is not tested\n')

test('another shell is refused', async () => {
  expect(await command(['completion', 'tcsh'], { home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there are bash, zsh and fish'),
  })
})
