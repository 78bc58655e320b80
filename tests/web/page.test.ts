// The files of the dashboard: they are small, need no credential, run nothing else, and are opened with the local token.

import { expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { Lexer } from 'marked'
import { tokensOf } from '../../lib/web/kit/markdown-tokens.ts'
import { build } from '../../lib/web/web.ts'
import { until } from '../support/bounded.ts'
import { command, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { took } from '../support/gap.ts'

const daemon = await spawnDaemon({ env: { CADRE_LOCAL_AUTH: 'strict' } })
const page = `http://localhost:${new URL(daemon.url).port}`

test.each(['daemon', 'hub'] as const)('the first page of the %s is below 60 KB compressed', async server => {
  const { html, files } = await build('cadre', server)
  const first = [...html.matchAll(/\/web\/([^"]+)"/g)].map(([, name]) => name!)
  // What a script imports comes with it. What it loads later does not.
  for (const name of first) {
    for (const [, more] of files[name]!.text.matchAll(/(?:from|import)"\.\/([^"]+)"/g)) {
      if (!first.includes(more!)) first.push(more!)
    }
  }
  const sizes = first.map(name => Bun.gzipSync(files[name]!.text).length)
  expect(sizes.reduce((sum, size) => sum + size, Bun.gzipSync(html).length)).toBeLessThan(60_000)
  // The reader of Markdown is loaded when a file needs it, and the log, tree and files of a run when they are opened.
  const isLater = (text: string) => !first.some(name => files[name]!.text.includes(text))
  expect(
    ['Nothing was logged yet.', 'aria-activedescendant', 'This run wrote no files.'].filter(text => !isLater(text)),
  ).toEqual([])
})

test('the font is a file beside the page, and whoever has the page has it', async () => {
  const html = await (await fetch(daemon.url)).text()
  const style = await (await fetch(daemon.url + /href="([^"]+\.css)"/.exec(html)![1])).text()
  const font = await fetch(daemon.url + /url\("?(\/web\/font-[^)"]+)/.exec(style)![1])
  const bytes = await font.bytes()
  expect([font.headers.get('content-type'), new TextDecoder().decode(bytes.subarray(0, 4))]).toEqual([
    'font/woff2',
    'wOF2',
  ])
  expect(bytes.length).toBeLessThan(60_000)
})

test('each class of the style sheets is used by a page', async () => {
  const pages = join(import.meta.dir, '../../lib/web')
  const sources = [...new Glob('**/*.{ts,tsx}').scanSync(pages)].map(path => readFileSync(join(pages, path), 'utf8'))
  const text = sources.join('\n')
  // Classes such as `ansi-red` are made of a prefix and a value; `stderr` is a stream of a log.
  const isUsed = (name: string) =>
    new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(text) ||
    text.includes(name.replace(/[^-]*$/, '${')) ||
    name === 'stderr'
  for (const sheet of ['kit/style.css', 'hub/hub.css']) {
    const selectors = readFileSync(join(pages, sheet), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\{[^{}]*\}/g, '')
    const classes = Array.from(selectors.matchAll(/\.([a-z][\w-]*)/g), ([, name]) => name!)
    expect(classes.length).toBeGreaterThan(20)
    expect([sheet, classes.filter(name => !isUsed(name))]).toEqual([sheet, []])
  }
})

test('the page needs no credential where every call does, and allows nothing but its own files', async () => {
  const moved = await fetch(daemon.url, { redirect: 'manual' })
  expect([moved.status, moved.headers.get('location')]).toEqual([307, `${page}/`])
  const reply = await fetch(page)
  const html = await reply.text()
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/html;charset=utf-8'])
  const policy = reply.headers.get('content-security-policy')!.split('; ')
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("script-src 'self'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).toContain("require-trusted-types-for 'script'")
  expect(policy.filter(each => /unsafe|\*|https?:|data:/.test(each))).toEqual([])
  expect(reply.headers.get('x-frame-options')).toBe('DENY')
  expect(reply.headers.get('x-content-type-options')).toBe('nosniff')
  expect(html).not.toContain(daemon.token)

  // Nothing is inline and nothing comes from elsewhere.
  const paths = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path!)
  expect(paths).toHaveLength(3)
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\son[a-z]+=|style=/)
  for (const path of paths) {
    const file = await fetch(daemon.url + path)
    expect([path, file.status, file.headers.get('x-content-type-options')]).toEqual([path, 200, 'nosniff'])
    expect(path.startsWith('/web/')).toBe(true)
  }
  expect((await fetch(`${daemon.url}/web/other.js`)).status).toBe(404)
  expect((await daemon.post('/v1/runs/list')).status).toBe(401)
})

test('dashboard prints the address with the token where no browser can be opened', async () => {
  const { code, stdout } = await command(['dashboard'], { home: daemon.home })
  expect([code, stdout]).toEqual([0, `${page}/#token=${daemon.token}\n`])
})

test('dashboard gives a browser a private file, and no argument that shows the token', async () => {
  const tools = folder()
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open'
  writeFileSync(join(tools, opener), `#!/bin/sh\necho "$@" > ${tools}/said.tmp\nmv ${tools}/said.tmp ${tools}/said\n`)
  chmodSync(join(tools, opener), 0o755)
  const env = { DISPLAY: ':0', PATH: `${tools}:${process.env.PATH}` }

  const { code, stdout } = await command(['dashboard'], { home: daemon.home, env })
  expect([code, stdout]).toEqual([0, `opened ${page} in the browser\n`])
  await until(() => existsSync(join(tools, 'said')), 'the browser is called')
  const file = readFileSync(join(tools, 'said'), 'utf8').trim()
  expect(file).toBe(join(daemon.home, 'dashboard.html'))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file, 'utf8')).toContain(`url=${page}/#token=${daemon.token}"`)

  writeFileSync(join(tools, opener), '#!/bin/sh\nexit 3\n')
  const failed = await command(['dashboard'], { home: daemon.home, env })
  expect(failed.stdout).toBe(`${page}/#token=${daemon.token}\n`)
})

test('dashboard says what to do without a daemon', async () => {
  const home = folder()
  const { code, stderr } = await command(['dashboard'], { home })
  expect(code).toBe(1)
  expect(stderr).toMatch(new RegExp(`no daemon serves ${home}: start one with: (bun \\S+daemon\\.ts|\\S*cadre) serve`))
})

// Each took seconds, all memory or the whole stack before there were limits.
test('Markdown is read in a bounded time, or not at all', () => {
  const lines = (unit: string, size: number) => `${unit.repeat(4_500 / unit.length)}\n`.repeat(size / 4_500)
  const wide = `${'|a'.repeat(2_000)}\n${'|-'.repeat(2_000)}\n${'b\n'.repeat(20_000)}`
  const bombs = ['*a_'.repeat(20_000), lines('*a_', 90_000), '|\n|-\n'.repeat(20_000), wide, 'a'.repeat(200_000)]
  const plain = 'A paragraph with **strong** words.\n\n'.repeat(2_700)
  // The least of three: a collection of garbage waits for threads of its own, which a busy machine holds up.
  const least = (work: () => void) => Math.min(took(work), took(work), took(work))
  const floor = least(() => new Lexer({ gfm: true }).lex(plain))
  const ms = least(() => {
    for (const text of bombs) {
      const tokens = tokensOf(text)
      expect([text.slice(0, 9), JSON.stringify(tokens ?? '').length < 2_000_000]).toEqual([text.slice(0, 9), true])
    }
  })
  // Against an innocent text of the same size, because machines differ. It is about 12; without the limits the
  // wide table alone makes it 200.
  expect(ms / floor).toBeLessThan(50)
  expect(tokensOf(lines('*a_', 90_000))).toBeUndefined()
  expect(tokensOf('|\n|-\n'.repeat(20_000))).toBeUndefined()
  for (const unit of ['>', '> ', '+ ', '1. ']) {
    const [first] = tokensOf(unit.repeat(1_000))!
    expect(first!.type).toMatch(/^(blockquote|list)$/)
  }
  expect(tokensOf(`# Report\n\n${'A paragraph with **strong** words.\n\n'.repeat(1_000)}`)!.length).toBe(2_002)
})
