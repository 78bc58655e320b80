// The dashboard's page: `GET /` and its assets. Bun bundles them in memory at the first request. The files hold nothing
// secret and need no credential; every call that the page makes is one of the API and needs what the API asks.

import { join } from 'node:path'
import { Elysia } from 'elysia'
import { CadreError } from '../error.ts'
import { httpKit } from '../http/kit.ts'

const PAGE = join(import.meta.dir, 'page')

/**
 * Nothing but our own files runs or loads, no page frames this one, and text never becomes markup: without a trusted
 * type, `innerHTML` and its like throw.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
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

interface File {
  bytes: Uint8Array<ArrayBuffer>
  type: string
}

interface Built {
  html: string
  /** By the name that follows `/web/`. Names contain a hash of the content. */
  files: Map<string, File>
}

/** The routes of the page. */
export function web() {
  let building: Promise<Built> | undefined
  const built = () => {
    building ??= build().catch(error => {
      building = undefined
      throw error
    })
    return building
  }
  return new Elysia({ name: 'web' })
    .use(httpKit())
    .get('/', async () => send({ bytes: encoded((await built()).html), type: 'text/html;charset=utf-8' }, 'no-cache'), {
      open: true,
      media: 'text/html',
      detail: { summary: 'The dashboard' },
    })
    .get(
      '/web/:file',
      async ({ params }) => {
        const file = (await built()).files.get(params.file)
        if (!file) throw new CadreError('not_found', `the dashboard has no file ${params.file}: reload the page`)
        return send(file, 'public, max-age=31536000, immutable')
      },
      { open: true, media: 'text/javascript', detail: { summary: 'A file of the dashboard' } },
    )
}

/** Bundles the page. Tests measure what it returns. */
export async function build(): Promise<Built> {
  const { outputs } = await Bun.build({
    entrypoints: [join(PAGE, 'main.tsx')],
    target: 'browser',
    minify: true,
    naming: { entry: '[name]-[hash].[ext]', chunk: '[name]-[hash].[ext]', asset: '[name]-[hash].[ext]' },
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  const icon = await Bun.file(join(PAGE, 'icon.svg')).bytes()
  const files = new Map([[`icon-${Bun.hash(icon).toString(36)}.svg`, { bytes: icon, type: 'image/svg+xml' }]])
  for (const output of outputs)
    files.set(nameOf(output.path), { bytes: new Uint8Array(await output.arrayBuffer()), type: output.type })
  const path = (extension: string) => `/web/${[...files.keys()].find(name => name.endsWith(extension))}`
  return { html: htmlOf(path('.js'), path('.css'), path('.svg')), files }
}

const nameOf = (path: string): string => path.split('/').at(-1)!

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

const encoded = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

const send = ({ bytes, type }: File, caching: string): Response =>
  new Response(bytes, { headers: { ...GUARDS, 'content-type': type, 'cache-control': caching } })
