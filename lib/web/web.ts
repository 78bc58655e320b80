// The pages of both servers: `GET /` and its assets. Bun bundles them in memory at the first request; a compiled program
// carries them. The files hold no secret and need no credential. Every call that a page makes is a call of the API, and needs
// the credential that the API asks for.

import { basename, join } from 'node:path'
import type { BunPlugin } from 'bun'
import { Elysia } from 'elysia'
import { CadreError } from '../error.ts'
import { httpKit } from '../http/kit.ts'
import { pageAddress } from '../http/page-address.ts'
import { isObject } from '../json.ts'
import { calledAs, isCadre } from '../program/called-as.ts'
import { carried, type Dashboard, type PageFile } from '../program/carried.ts'
import { ROOT } from '../program/install-root.ts'

const WEB = join(ROOT, 'lib/web')

/**
 * The browser runs and loads only our own files, no other page can frame this one, and text never becomes markup: without
 * a trusted type, `innerHTML` and its like throw.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const GUARDS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

type Server = 'daemon' | 'hub'

/** The routes of the page of a server. */
export function web(of: Server = 'daemon') {
  let building = carried && Promise.resolve(of === 'hub' ? carried.hubPages : carried.dashboard)
  const built = () => {
    building ??= build(commandOfPage(), of).catch(error => {
      building = null
      throw error
    })
    return building
  }
  return new Elysia({ name: 'web' })
    .use(httpKit())
    .get('/', async ({ request }) => elsewhere(of, request) ?? send((await built()).html, HTML, 'no-cache'), {
      open: true,
      media: 'text/html',
      detail: { summary: 'The dashboard', hide: true },
    })
    .get(
      '/web/:file',
      async ({ params }) => {
        const { files } = await built()
        const file = Object.hasOwn(files, params.file) && files[params.file]
        if (!file) throw new CadreError('not_found', `the dashboard has no file ${params.file}: reload the page`)
        const body = file.isBase64 ? Uint8Array.fromBase64(file.text) : file.text
        return send(body, file.type, 'public, max-age=31536000, immutable')
      },
      { open: true, media: 'text/javascript', detail: { summary: 'A file of the dashboard', hide: true } },
    )
}

const HTML = 'text/html;charset=utf-8'

/** Leads to the one address of the page of a home. The browser keeps what stands behind `#`. */
function elsewhere(of: Server, { headers }: Request): Response | null {
  const asked = `http://${headers.get('host') ?? ''}`
  const address = pageAddress(asked)
  if (of === 'hub' || address === asked) return null
  return new Response(null, {
    status: 307,
    headers: { ...GUARDS, location: `${address}/`, 'cache-control': 'no-store' },
  })
}

/**
 * How hints of the page name cadre. Anybody who reaches the server can read the page. So it has no absolute path: that
 * would reveal where cadre is installed, and in whose home.
 */
function commandOfPage(): string {
  const called = calledAs()
  if (!/(^|[ '])\//.test(called)) return called
  return isCadre() ? 'cadre' : 'bun daemon.ts'
}

/**
 * Bundles the page of a server. `jsx` repeats tsconfig.json, because Bun reads none below a node_modules, and could read the
 * one of the current folder. `command` is how hints name cadre. Tests measure the result.
 */
export async function build(command = calledAs(), of: Server = 'daemon'): Promise<Dashboard> {
  const font = await readFont()
  const { outputs } = await Bun.build({
    entrypoints: [join(WEB, of, 'main.tsx')],
    target: 'browser',
    minify: true,
    // A visitor who opens no Markdown file does not load the reader of Markdown.
    splitting: true,
    tsconfig: join(WEB, 'tsconfig.json'),
    external: ['/web/*'],
    plugins: [callsOfPage, font.inStyle],
    jsx: { runtime: 'automatic', importSource: 'preact' },
    naming: { entry: '[name]-[hash].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
    define: { 'process.env.NODE_ENV': '"production"', CADRE_COMMAND: JSON.stringify(command) },
  })
  const icon = await Bun.file(join(WEB, 'kit/icon.svg')).text()
  const entry = outputs.find(({ kind }) => kind === 'entry-point')!
  const bundled = outputs.map(async output => [basename(output.path), { text: await output.text(), type: output.type }])
  const files: Dashboard['files'] = {
    [`icon-${Bun.hash(icon).toString(36)}.svg`]: { text: icon, type: 'image/svg+xml' },
    [font.name]: font.file,
    ...Object.fromEntries(await Promise.all(bundled)),
  }
  const path = (extension: string) => `/web/${Object.keys(files).find(name => name.endsWith(extension))}`
  return { html: htmlOf(`/web/${basename(entry.path)}`, path('.css'), path('.svg')), files }
}

/** The font is a file of its own, so that it holds nothing up: Bun would write it into the style. Its name is that of its content. */
async function readFont() {
  const path = Bun.fileURLToPath(import.meta.resolve('@fontsource-variable/inter/files/inter-latin-wght-normal.woff2'))
  const bytes = await Bun.file(path).bytes()
  const name = `font-${Bun.hash(bytes).toString(36)}.woff2`
  const file: PageFile = { text: bytes.toBase64(), type: 'font/woff2', isBase64: true }
  const inStyle: BunPlugin = {
    name: 'name of the font',
    setup({ onLoad }) {
      onLoad({ filter: /\/lib\/web\/kit\/style\.css$/ }, async style => {
        const text = await Bun.file(style.path).text()
        return { contents: text.replace('/web/font.woff2', `/web/${name}`), loader: 'css' }
      })
    },
  }
  return { name, file, inStyle }
}

/**
 * The calls of lib/wire/calls as pages import them: with their addresses, and without the schemas, which only servers and
 * the compiler read.
 */
const callsOfPage: BunPlugin = {
  name: 'calls of the page',
  setup({ onLoad }) {
    onLoad({ filter: /\/lib\/wire\/calls\/[^/]+\.ts$/ }, async ({ path }) => {
      const declared: Record<string, unknown> = await import(path)
      const lines = Object.entries(declared).map(([name, call]) => {
        const address = isObject(call) && { path: call.path, method: call.method, envelope: call.envelope }
        return address && typeof address.path === 'string' ? `export const ${name} = ${JSON.stringify(address)}` : ''
      })
      return { contents: lines.join('\n'), loader: 'js' }
    })
  },
}

const htmlOf = (script: string, style: string, icon: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>cadre</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body><div id="page"></div><noscript>The dashboard needs JavaScript.</noscript></body>
</html>
`

const send = (text: string | Uint8Array<ArrayBuffer>, type: string, caching: string): Response =>
  new Response(text, { headers: { ...GUARDS, 'content-type': type, 'cache-control': caching } })
