// Puts a file of a signed release in the place of the running program, or beside its caller. Everything is verified before
// anything is replaced: the signature over version and sums, that the version is not older, the sum of the file, and that
// the new program starts here and has that version. The program is replaced by a rename, so it is whole whenever the
// process ends: the old one or the new one. What a killed upgrade leaves beside it is removed by the next.

import { constants, existsSync } from 'node:fs'
import { chmod, link, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { digestOf, openPlain, writeWhole } from '../../../agent/files/hashed-file.ts'
import { CadreError } from '../../../error.ts'
import { failpoint } from '../../../failpoint.ts'
import { npmFileName, openRelease, programName, type Release, SIGNATURE, SUMS } from '../../../program/release.ts'
import { releaseKey } from '../../../program/release-key.ts'
import { type ReleaseSource, releaseAt } from './release-source.ts'

const SUMS_BYTES = 64 * 1024
const SIGNATURE_BYTES = 1024
/** Compiled programs have 105 to 130 MB. */
const FILE_BYTES = 512 * 1_048_576
const START_MS = 60_000

export interface UpgradeOptions {
  /** The version that runs. */
  version: string
  /** Whether an older version is taken. */
  downgrade: boolean
  /** For tests: the key of the release, which is that of the program otherwise. */
  key?: string
  /** For tests: how long a file may take. */
  limitMs?: number
}

/** A release whose signature fits, and whose version may be installed. */
interface Admitted {
  source: ReleaseSource
  release: Release
}

/**
 * Replaces the compiled program `program` by that of the release at `location`, and returns its version.
 * @param target the system, as `bun run build` names it.
 * @throws `invalid_request` and `unavailable`; nothing is changed then.
 */
export async function replaceProgram(
  location: string,
  program: string,
  { target = systemOf(), ...options }: UpgradeOptions & { target?: string },
): Promise<{ version: string; file: string }> {
  const admitted = await admit(location, options)
  const { version } = admitted.release
  const sum = sumOf(admitted, programName(version, target))
  // A link that leads to the program stays.
  const file = await realpath(program)
  const draft = await draftOf(file)
  try {
    await copy(admitted, programName(version, target), sum, draft)
    await chmod(draft, ((await stat(file)).mode & 0o777) | constants.S_IXUSR)
    checkStart(draft, version)
    failpoint()
    await rename(draft, file)
    failpoint()
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  await syncFolder(dirname(file))
  return { version, file }
}

/**
 * Verifies the npm file of the release at `location`, and returns its path. A fetched one is put into `folder` under the
 * name that `npm pack` gives it.
 * @throws `invalid_request` and `unavailable`; nothing is changed then, and no file of `folder` is replaced.
 */
export async function verifiedNpmFile(
  location: string,
  folder: string,
  options: UpgradeOptions,
): Promise<{ version: string; file: string }> {
  const admitted = await admit(location, options)
  const { version } = admitted.release
  const name = npmFileName(version)
  const sum = sumOf(admitted, name)
  const file = join(folder, name)
  const draft = await draftOf(file)
  try {
    await copy(admitted, name, sum, draft)
    failpoint()
    await link(draft, file).catch(error => keepSame(error, file, sum))
  } finally {
    await rm(draft, { force: true })
  }
  return { version, file }
}

/** The system of this machine, as `bun run build` names it; deploy/cadre recognizes musl in the same way. */
export function systemOf(): string {
  const { platform, arch } = process
  const isGlibc = ['/lib/ld-linux-aarch64.so.1', '/lib64/ld-linux-x86-64.so.2'].some(each => existsSync(each))
  const isMusl = ['aarch64', 'x86_64'].some(each => existsSync(`/lib/ld-musl-${each}.so.1`))
  return `${platform}-${arch}${isMusl && !isGlibc ? '-musl' : ''}`
}

async function admit(
  location: string,
  { version, downgrade, key = releaseKey, limitMs }: UpgradeOptions,
): Promise<Admitted> {
  const source = await releaseAt(location, limitMs === undefined ? {} : { limitMs })
  const read = async (name: string, most: number) => {
    try {
      const chunks: Uint8Array[] = []
      for await (const chunk of source.chunks(name, most)) chunks.push(chunk.slice())
      return Buffer.concat(chunks)
    } catch (error) {
      if (error instanceof CadreError && error.code === 'unavailable') throw error
      throw new CadreError(
        'invalid_request',
        `${source.locationOf(name)} cannot be read, and without it nobody knows who made the release; nothing was changed`,
        { cause: error },
      )
    }
  }
  const signature = await read(SIGNATURE, SIGNATURE_BYTES)
  const release = openRelease(await read(SUMS, SUMS_BYTES), signature, key)
  if (Bun.semver.order(release.version, version) < 0 && !downgrade) {
    throw new CadreError(
      'invalid_request',
      `the release has the version ${release.version}, which is older than ${version}, and may lack what was mended since: ` +
        'add --downgrade to install it; nothing was changed',
    )
  }
  return { source, release }
}

function sumOf({ source, release }: Admitted, name: string): string {
  const sum = release.sums.get(name)
  const isOther = source.named !== null && ![name, SUMS, SIGNATURE].includes(source.named)
  if (sum !== undefined && !isOther) return sum
  const what = isOther ? `this cadre is upgraded by ${name} of a release` : `the release has no ${name}`
  throw new CadreError('invalid_request', `${what}; nothing was changed`)
}

/** Writes the file of the release to the path `draft`, at which there is nothing. */
async function copy({ source }: Admitted, name: string, sum: string, draft: string): Promise<void> {
  const { sha256 } = await writeWhole(draft, source.chunks(name, FILE_BYTES))
  failpoint()
  if (sha256 === sum) return
  throw new CadreError(
    'invalid_request',
    `${source.locationOf(name)} is not what was signed: it was changed, or it is not whole; nothing was changed`,
  )
}

/** The draft is executed only after its sum was found to be the one that was signed. */
function checkStart(draft: string, version: string): void {
  if (versionOf(draft) === version) return
  throw new CadreError(
    'invalid_request',
    'the program of the release does not start on this machine, or has another version; nothing was changed',
  )
}

function versionOf(program: string): string | null {
  try {
    const { success, stdout } = Bun.spawnSync([program, '--version'], { cwd: '/', stderr: 'ignore', timeout: START_MS })
    // The commit follows the number.
    return success ? (stdout.toString().split(/\s/, 1)[0] ?? null) : null
  } catch {
    // The system does not execute it.
    return null
  }
}

/** What somebody put there is not replaced, and not taken for what was verified. */
async function keepSame(error: NodeJS.ErrnoException, file: string, sum: string): Promise<void> {
  if (error.code !== 'EEXIST') throw error
  const handle = await openPlain(file).catch(() => null)
  try {
    if (handle && (await handle.stat()).isFile() && (await digestOf(handle)).sha256 === sum) return
  } finally {
    await handle?.close()
  }
  throw new CadreError(
    'invalid_request',
    `${file} is there already and is not the file of the release: remove it first`,
  )
}

/** A new name beside `file`. Drafts of processes that are gone are removed. */
async function draftOf(file: string): Promise<string> {
  const form = new RegExp(`^${RegExp.escape(basename(file))}\\.upgrade-(\\d+)-[0-9a-f]{8}$`)
  for (const name of await readdir(dirname(file))) {
    const pid = Number(form.exec(name)?.[1] ?? 0)
    if (pid > 0 && !isAlive(pid)) await rm(join(dirname(file), name), { force: true })
  }
  return `${file}.upgrade-${process.pid}-${crypto.randomUUID().slice(0, 8)}`
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
