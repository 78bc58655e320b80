// Finds out whether this machine can make sandboxes, by making one. It tries once, not for each phase: a
// success counts for the life of the process, and a failure is tried again after a minute at the earliest.

import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter } from 'node:path'
import { textIn } from '../stream.ts'
import { oneLine } from '../text/one-line.ts'
import { openAll } from './commands/opened.ts'
import { bubblewrap, container, type Enclosed, type Sandbox, systemFolders } from './commands/sandbox.ts'
import { type Mount, type Protected, type SandboxView, sharedFolder } from './commands/sandbox-view.ts'
import { sharedEnvironment } from './context.ts'

/** How long a trial may take on a machine that is busy: one that is given up too soon would look like no bubblewrap. */
const TRIAL_MS = 60_000
const AGAIN_MS = 60_000
/** Characters of what the program says that a reason repeats. */
const MOST_OUTPUT = 300
/** What is kept of its output, in bytes. */
const MOST_READ = 65_536

/** How to make a sandbox, or why that is not possible here. */
export type SandboxFactory = { make(view: SandboxView): Sandbox } | { fails: string }

export interface SandboxOptions {
  kind: 'bubblewrap' | 'container'
  /** Of containers. */
  image: string | null
  home: string
}

/** `works` holds for the life of the process, so that no command can bring about a trial that fails. */
interface Tried {
  factory: Promise<SandboxFactory>
  works: boolean
  /** When a failure may be tried again. */
  until: number
}

const known = new Map<string, Tried>()

/** Tries what is asked for, unless that was tried. `again` tries at once what has failed. */
export function sandboxFactoryFor(options: SandboxOptions, again = false): Promise<SandboxFactory> {
  const key = JSON.stringify([options, process.env.PATH])
  const found = known.get(key)
  if (found?.works || (found && !again && performance.now() < found.until)) return found.factory
  const entry: Tried = { factory: tried(options), works: false, until: Number.POSITIVE_INFINITY }
  known.set(key, entry)
  void entry.factory.then(factory => {
    entry.works = !('fails' in factory)
    entry.until = performance.now() + AGAIN_MS
  })
  return entry.factory
}

/** The folders that no command sees. A person's home is also the one of the account, whatever HOME says. */
export function protectedFolders(home: string): Protected {
  const uid = String(process.getuid?.())
  const accounts = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8').split('\n') : []
  // passwd(5): the name, the password, the uid, the gid, a comment, the home.
  const homes = accounts.map(line => line.split(':')).flatMap(fields => (fields[2] === uid ? (fields[5] ?? []) : []))
  return { home, persons: [...new Set([homedir(), ...homes])].filter(path => path.startsWith('/')) }
}

/** The real path, or null when there is nothing. */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

async function tried(options: SandboxOptions): Promise<SandboxFactory> {
  if (process.platform !== 'linux') return { fails: 'sandboxes need Linux' }
  return options.kind === 'bubblewrap' ? tryBubblewrap(options.home) : tryContainer(options)
}

async function tryBubblewrap(home: string): Promise<SandboxFactory> {
  const program = Bun.which('bwrap')
  if (program === null) return { fails: 'bwrap was not found in PATH: install the package bubblewrap' }
  const env = sharedEnvironment()
  const help = await outcome({ command: [program, '--help'], env, inGroup: true })
  const forbidsNamespaces = help.output.includes('--disable-userns')
  const mountsOpened = help.output.includes('--ro-bind-fd')
  const ways = { program, forbidsNamespaces, mountsOpened, system: systemFolders(), shared: programs(home), env }
  const make = (view: SandboxView) => bubblewrap(ways, view)
  const trial = make({ mounts: [], network: false }).enclose(['sh', '-c', ':'], '/tmp', env)
  const { ok, output } = await outcome(trial)
  if (ok) return { make }
  return {
    fails: `bwrap does not work here (${output}): let this user make user namespaces, and mount /proc in them`,
  }
}

async function tryContainer({ image, home }: SandboxOptions): Promise<SandboxFactory> {
  if (image === null) return { fails: 'exec.image is not set: it names the image in which commands run' }
  const program = Bun.which('podman') ?? Bun.which('docker')
  if (program === null) return { fails: 'neither podman nor docker was found in PATH' }
  const { ok, output } = await outcome({
    command: [program, 'image', 'inspect', image],
    env: containerEnvironment(),
    inGroup: true,
  })
  if (!ok) return { fails: `${program} does not have the image ${image} (${output}): pull it, or start the service` }
  const user = `${process.getuid!()}:${process.getgid!()}`
  const ways = { program, image, user, label: containerLabel(home), env: containerEnvironment() }
  return { make: view => container(ways, view) }
}

/** What podman and docker need besides, to find their service. */
const CONTAINER_ENVIRONMENT = ['XDG_RUNTIME_DIR', 'DOCKER_HOST', 'CONTAINER_HOST', 'DOCKER_CONTEXT']

function containerEnvironment(): Record<string, string> {
  const set = CONTAINER_ENVIRONMENT.flatMap(name => (process.env[name] ? [[name, process.env[name]]] : []))
  return { ...sharedEnvironment(), ...Object.fromEntries(set) }
}

/** The label of the containers of a home. */
const containerLabel = (home: string): string => `cadre.home=${Bun.SHA256.hash(home, 'hex').slice(0, 16)}`

/** Ends the containers that an earlier daemon of this home left. Never throws. */
export async function endLeftContainers(home: string): Promise<void> {
  const program = Bun.which('podman') ?? Bun.which('docker')
  if (program === null) return
  const env = containerEnvironment()
  const listing = ['ps', '--all', '--quiet', '--filter', `label=${containerLabel(home)}`]
  const { ok, output } = await outcome({ command: [program, ...listing], env, inGroup: true })
  const ids = ok ? output.split(/\s+/).filter(id => /^[0-9a-f]{12,64}$/.test(id)) : []
  if (ids.length > 0) await outcome({ command: [program, 'rm', '--force', ...ids], env, inGroup: true })
}

/** The folders of PATH that are neither of the system nor of a person, and the Bun that runs cadre, wherever it is. */
function programs(home: string): Mount[] {
  const kept = protectedFolders(home)
  const real = (path: string) => (statSync(path, { throwIfNoEntry: false })?.isDirectory() ? realPath(path) : null)
  const folders = (process.env.PATH ?? '').split(delimiter).flatMap(path => sharedFolder(path, kept, real) ?? [])
  return [...folders, { path: process.execPath, source: realpathSync(process.execPath), access: 'read' }]
}

/** Runs a command to its end. */
async function outcome({
  command,
  env,
  input = '',
  opened: paths = [],
}: Enclosed): Promise<{ ok: boolean; output: string }> {
  try {
    using opened = openAll(paths)
    const child = Bun.spawn(command, {
      ...{ cwd: '/', env, timeout: TRIAL_MS, killSignal: 'SIGKILL' },
      stdio: [Buffer.from(input), 'pipe', 'pipe', ...opened.descriptors],
    })
    const [code, stdout, stderr] = await Promise.all([
      child.exited,
      textIn(child.stdout, { most: MOST_READ }),
      textIn(child.stderr, { most: MOST_READ }),
    ])
    const ok = code === 0
    return { ok, output: ok ? stdout : oneLine(stderr).slice(0, MOST_OUTPUT) || `exit code ${code}` }
  } catch (error) {
    return { ok: false, output: oneLine(String(error)).slice(0, MOST_OUTPUT) }
  }
}
