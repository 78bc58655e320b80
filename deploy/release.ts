// `bun run release [TARGET …]` makes the release of the commit HEAD in `dist/release`: the npm file, the programs of all
// targets or of those that are named, the image where it can be built, a bill of materials, and the checksums of them all.
// Two releases of one commit have the same bytes: everything is made from an export of the commit with the packages of
// bun.lock, dated with the commit's time. `bun run release raise` gives it a new number before. `bun run release sign` signs the checksums and the version, also on another
// machine, with the private key of CADRE_RELEASE_KEY (PEM) or of the file CADRE_RELEASE_KEY_FILE.

import {
  copyFileSync,
  createReadStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ROOT } from '../lib/program/install-root.ts'
import {
  bomName,
  isReleaseVersion,
  npmFileName,
  parseSums,
  programName,
  SIGNATURE,
  SUMS,
  signRelease,
  sumsText,
} from '../lib/program/release.ts'
import { releaseKey } from '../lib/program/release-key.ts'
import { type SigningKey, signingKeyFrom } from '../lib/program/signing-key.ts'
import { billOfMaterials } from './bill-of-materials.ts'
import { TARGETS, type Target } from './build.ts'
import { buildImages } from './image.ts'
import { mustBeNew, raise } from './raise.ts'

/** What npm adds to `files` of package.json. */
const ALWAYS = ['package.json', 'README.md', 'LICENSE']

/** Makes the files of a release of the commit HEAD of the clone `repository` in the folder `out`, without a signature. */
export async function makeRelease(repository: string, out: string, targets: readonly Target[]): Promise<void> {
  const seconds = timeOf(repository)
  const work = mkdtempSync(join(tmpdir(), 'cadre-release-'))
  try {
    const folder = join(work, 'cadre')
    mkdirSync(folder)
    run(['tar', '-x', '-C', folder], repository, git(repository, ['archive', 'HEAD']))
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
    mustBeNew(repository, version, git)
    if (!isReleaseVersion(version)) throw new Error(`package.json has the version ${version}, which no release has`)
    const every = ['--os=*', '--cpu=*', '--libc=*']
    run([process.execPath, 'install', '--frozen-lockfile', '--production', '--ignore-scripts', ...every], folder)
    checkBun(folder)

    rmSync(out, { recursive: true, force: true })
    mkdirSync(out, { recursive: true })
    writeFileSync(join(out, npmFileName(version)), npmFile(repository))
    writeFileSync(join(out, bomName(version)), billOfMaterials(folder, seconds))
    if (targets.length > 0) run([process.execPath, 'deploy/build.ts', ...targets], folder)
    for (const target of targets) {
      copyFileSync(join(folder, 'dist', `cadre-${target}`), join(out, programName(version, target)))
    }
    for (const words of buildImages({ folder, out, version, seconds, targets })) process.stderr.write(`${words}\n`)
    await writeSums(out)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/**
 * The npm file of the commit HEAD: what `files` of package.json names, in the order of the paths, with the commit's time
 * and no owner.
 */
export function npmFile(repository: string): Uint8Array {
  const { files } = JSON.parse(git(repository, ['show', 'HEAD:package.json']).toString()) as { files: string[] }
  const paths = [...ALWAYS, ...files].map(path => `:(glob,top)${path.endsWith('/') ? `${path}**` : path}`)
  const words = ['archive', '--format=tar', '--prefix=package/', 'HEAD', '--', ...paths]
  const packed = gzipSync(git(repository, ['-c', 'tar.umask=0022', ...words]), { level: 9 })
  // The system on which it was packed (RFC 1952): 255 is "unknown".
  packed[9] = 255
  return packed
}

/**
 * Signs the release in the folder `out`, whose files must have their sums.
 * @param carried the public key that the programs of the release have in them.
 */
export async function signFolder(out: string, version: string, key: SigningKey, carried: string): Promise<void> {
  if (key.key !== carried) {
    throw new Error(
      `the private key is that of ${key.key}, but lib/program/release-key.ts has ${carried}: no cadre would take it`,
    )
  }
  const text = readFileSync(join(out, SUMS), 'utf8')
  const [sums, found] = [parseSums(text), await sumsOf(out)]
  for (const name of new Set([...sums.keys(), ...found.keys()])) {
    if (sums.get(name) !== found.get(name)) throw new Error(`${SUMS} does not have the sum of ${name}`)
  }
  if (!sums.has(npmFileName(version))) throw new Error(`${out} is no release of ${version}`)
  writeFileSync(join(out, SIGNATURE), signRelease(version, text, key))
}

/** Writes the checksums of the files in `out`. */
export async function writeSums(out: string): Promise<void> {
  writeFileSync(join(out, SUMS), sumsText(await sumsOf(out)))
}

async function sumsOf(out: string): Promise<Map<string, string>> {
  const sums = new Map<string, string>()
  for (const name of readdirSync(out).filter(name => name !== SUMS && name !== SIGNATURE)) {
    const hasher = new Bun.CryptoHasher('sha256')
    for await (const chunk of createReadStream(join(out, name))) hasher.update(chunk as Buffer)
    sums.set(name, hasher.digest('hex'))
  }
  return sums
}

/** The bytecode of programs is written by the Bun that runs here, for the Bun that they contain. */
function checkBun(folder: string): void {
  const locked = readFileSync(join(folder, 'node_modules/@oven/bun-linux-x64/package.json'), 'utf8')
  const { version } = JSON.parse(locked) as { version: string }
  if (version !== Bun.version)
    throw new Error(`release with Bun ${version}, which bun.lock has; this is ${Bun.version}`)
}

/** https://reproducible-builds.org/specs/source-date-epoch/ */
function timeOf(repository: string): number {
  return Number(process.env.SOURCE_DATE_EPOCH ?? git(repository, ['show', '-s', '--format=%ct', 'HEAD']).toString())
}

const git = (repository: string, words: string[]): Buffer => run(['git', ...words], repository)

export function run(command: string[], cwd: string, stdin?: Buffer): Buffer {
  const { success, stdout, stderr } = Bun.spawnSync(command, {
    cwd,
    // Otherwise Bun hands on the variables of its start, also those that were deleted since.
    env: process.env,
    stdin: stdin ?? 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  if (!success) throw new Error(`${command.slice(0, 3).join(' ')} failed: ${stderr}`)
  return stdout
}

/** The private key, which is taken out of the environment, so that no program of the build gets it. */
export function givenKey(): SigningKey | null {
  const { CADRE_RELEASE_KEY: text, CADRE_RELEASE_KEY_FILE: file } = process.env
  delete process.env.CADRE_RELEASE_KEY
  delete process.env.CADRE_RELEASE_KEY_FILE
  const pem = text ?? (file && readFileSync(file, 'utf8'))
  return pem ? signingKeyFrom(pem) : null
}

if (import.meta.main) {
  const out = join(ROOT, 'dist/release')
  const words = process.argv.slice(2)
  if (words[0] === 'raise' && words.length === 2) {
    process.stdout.write(`${raise(ROOT, words[1]!, git)}\n`)
    process.exit()
  }
  const unknown = words.find(word => word !== 'sign' && !TARGETS.some(target => target === word))
  if (unknown !== undefined || (words.includes('sign') && words.length > 1)) {
    process.stderr.write(
      `usage: bun run release [${TARGETS.join('|')} …], bun run release raise VERSION, or bun run release sign\n`,
    )
    process.exit(2)
  }
  const key = givenKey()
  if (words[0] !== 'sign') {
    if (git(ROOT, ['status', '--porcelain']).length > 0) {
      process.stderr.write('what is not committed is no part of the release\n')
    }
    await makeRelease(ROOT, out, words.length === 0 ? TARGETS : TARGETS.filter(target => words.includes(target)))
  }
  const { version } = JSON.parse(git(ROOT, ['show', 'HEAD:package.json']).toString()) as { version: string }
  if (key) await signFolder(out, version, key, releaseKey)
  process.stdout.write(readFileSync(join(out, SUMS), 'utf8'))
  if (!key) {
    process.stderr.write('not signed: call `bun run release sign` with CADRE_RELEASE_KEY_FILE=FILE\n')
    if (words[0] === 'sign') process.exit(2)
  }
}
