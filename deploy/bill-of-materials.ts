// What a release is made of, as CycloneDX 1.6 JSON (https://cyclonedx.org/docs/1.6/json/): the packages that run with
// cadre, as bun.lock pins them. Nothing in it depends on the machine or the time.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** An entry of bun.lock: `name@version`, the registry, what it needs, and its SHA-512 in base64. */
type Locked = [id: string, registry: string, needs: Needs, integrity: string]

interface Needs {
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  optionalPeers?: string[]
  /** Where it can be installed; `none` is a system that Bun does not know. */
  os?: string | string[]
  cpu?: string | string[]
}

interface Lock {
  workspaces: { '': Needs }
  packages: Record<string, Locked>
}

/** Of a package.json. */
interface Manifest {
  name: string
  version: string
  description: string
  license?: string
}

/**
 * The bill of the clone in `folder`, in which the packages of all systems are installed without those for development.
 * @param seconds the time of the commit, in Unix seconds.
 */
export function billOfMaterials(folder: string, seconds: number): string {
  const read = (path: string) => readFileSync(join(folder, path), 'utf8')
  const lock = Bun.JSONC.parse(read('bun.lock')) as Lock
  const { name, version, description, license } = JSON.parse(read('package.json')) as Manifest
  const own = { name, version, 'bom-ref': purlOf(name, version), purl: purlOf(name, version) }
  const keys = reachable(lock)
  const components = keys.map(key => {
    const [id, , , integrity] = lock.packages[key]!
    const { license } = JSON.parse(read(join(folderOf(key), 'package.json'))) as Manifest
    return { type: 'library', ...identityOf(id), ...licensed(license), hashes: hashesOf(integrity) }
  })
  const refOf = (key: string) => identityOf(lock.packages[key]![0]).purl
  const dependencies = [
    { ref: own.purl, dependsOn: inOrder(needsOf(lock, '').map(refOf)) },
    ...keys.map(key => ({ ref: refOf(key), dependsOn: inOrder(needsOf(lock, key).map(refOf)) })),
  ]
  const bill = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${Bun.randomUUIDv5(`${own.purl} ${seconds}`, 'url')}`,
    version: 1,
    metadata: {
      timestamp: new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z'),
      component: { type: 'application', ...own, description, ...licensed(license) },
    },
    components: once(components, ({ purl }) => purl),
    dependencies: once(dependencies, ({ ref }) => ref),
  }
  return `${JSON.stringify(bill, null, 2)}\n`
}

/** The keys of the packages that run with cadre, in order. */
function reachable(lock: Lock): string[] {
  const found = new Set<string>()
  const left = needsOf(lock, '')
  for (let key = left.pop(); key !== undefined; key = left.pop()) {
    if (found.has(key)) continue
    found.add(key)
    left.push(...needsOf(lock, key))
  }
  return inOrder(found)
}

/** The keys of what the package `key` needs; `''` is cadre itself. */
function needsOf(lock: Lock, key: string): string[] {
  const needs = key === '' ? lock.workspaces[''] : lock.packages[key]![2]
  const { dependencies, optionalDependencies, peerDependencies, optionalPeers = [] } = needs
  const peers = Object.keys(peerDependencies ?? {}).filter(name => !optionalPeers.includes(name))
  const names = [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]
  return names.flatMap(name => resolved(lock, key, name) ?? []).filter(found => isInstallable(lock.packages[found]![2]))
}

const isInstallable = ({ os, cpu }: Needs): boolean => os !== 'none' && cpu !== 'none'

/** As Node resolves: from the own packages of `key` outwards. */
function resolved(lock: Lock, key: string, name: string): string | null {
  for (let above = segments(key); ; above = above.slice(0, -1)) {
    const found = [...above, name].join('/')
    if (Object.hasOwn(lock.packages, found)) return found
    if (above.length === 0) return null
  }
}

/** `['a', '@b/c']` of `a/@b/c`. */
const segments = (key: string): string[] => key.match(/@[^/]+\/[^/]+|[^/]+/g) ?? []

const folderOf = (key: string): string =>
  segments(key)
    .map(name => `node_modules/${name}`)
    .join('/')

function identityOf(id: string) {
  const at = id.lastIndexOf('@')
  const [name, version] = [id.slice(0, at), id.slice(at + 1)]
  const purl = purlOf(name, version)
  return { name, version, 'bom-ref': purl, purl }
}

/** https://github.com/package-url/purl-spec, type npm. */
const purlOf = (name: string, version: string): string => `pkg:npm/${name.replace('@', '%40')}@${version}`

function licensed(license: string | undefined) {
  return license === undefined ? {} : { licenses: [{ expression: license }] }
}

function hashesOf(integrity: string) {
  if (!integrity.startsWith('sha512-')) throw new Error(`bun.lock has a package without a SHA-512: ${integrity}`)
  return [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }]
}

const inOrder = (texts: Iterable<string>): string[] => [...new Set(texts)].sort()

function once<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  return [...new Map(items.map(item => [keyOf(item), item])).values()]
}
