// A registry of npm on this machine. It has cadre as `npm pack` makes it, and of each package that cadre needs an empty
// one, so that an install takes seconds and nothing is fetched from elsewhere. `fillIn` then puts links to the packages
// of the repository in place of the empty ones.

import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import manifest from '../../package.json'

const PACKAGES = join(import.meta.dir, '../../node_modules')
const NEEDED = { ...manifest.dependencies, ...manifest.optionalDependencies }

/** Serves until the end of its scope. `archive` is what `npm pack` made. */
export function registry(archive: string): Disposable & { url: string } {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { origin, pathname } = new URL(request.url)
      const [name, version] = decodeURIComponent(pathname).slice(1).split('/-/') as [string, string?]
      const found = name === manifest.name ? manifest : needed(name)
      if (!found) return Response.json({}, { status: 404 })
      if (version === undefined) return Response.json(packument(found, origin))
      return new Response(name === manifest.name ? Bun.file(archive) : archiveOf(found))
    },
  })
  return { url: server.url.href, [Symbol.dispose]: () => void server.stop(true) }
}

function packument(found: { name: string; version: string }, origin: string) {
  const { name, version } = found
  const dist = { tarball: `${origin}/${name}/-/${version}` }
  return { name, 'dist-tags': { latest: version }, versions: { [version]: { ...found, dist } } }
}

/** What the registry says of a package that cadre needs, and that needs nothing itself. */
function needed(name: string) {
  const file = join(PACKAGES, name, 'package.json')
  if (!Object.hasOwn(NEEDED, name) || !existsSync(file)) return null
  const { version, os, cpu, libc } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  return { name, version: version!, os, cpu, libc }
}

function archiveOf(found: object): Uint8Array<ArrayBuffer> {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-test-package-'))
  try {
    writeFileSync(join(folder, 'package.json'), JSON.stringify(found))
    return Bun.spawnSync(['tar', '-cz', '-C', dirname(folder), basename(folder)]).stdout as Uint8Array<ArrayBuffer>
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Replaces the empty packages in a `node_modules`, and returns their names. */
export function fillIn(packages: string): string[] {
  const names = Object.keys(NEEDED).filter(name => existsSync(join(packages, name, 'package.json')))
  for (const name of names) {
    rmSync(join(packages, name), { recursive: true })
    symlinkSync(join(PACKAGES, name), join(packages, name))
  }
  return names
}
