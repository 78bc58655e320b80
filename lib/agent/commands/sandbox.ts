// Sandboxes for commands: turns a command into one that runs it in bubblewrap or in a container. Both give it a view
// of the file system (sandbox-view.ts) and a read-only system, processes, network and /tmp of its own, no
// capabilities, no way to new privileges, and an end with the command. Pure, except for `systemFolders`.
//
// bubblewrap: https://github.com/containers/bubblewrap/blob/main/bwrap.xml
// podman: https://docs.podman.io/en/latest/markdown/podman-run.1.html; docker takes the same options.

import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { Type } from '../../schema/type.ts'
import type { Mount, SandboxView } from './sandbox-view.ts'

/**
 * The field `needs` of a phase with commands. It takes no template, so that people see it before the run.
 * @example entry: Type.Object({ needs: Type.Optional(CommandNeeds) })
 */
export const CommandNeeds = Type.Array(
  Type.Enum(['network'], { 'x-expected': '`network` (phases to wait for stand in `depends_on`)' }),
  {
    maxItems: 1,
    'x-expected': 'the list [network] (phases to wait for stand in `depends_on`)',
    'x-literal': 'the owner of the machine has to see it before the run',
    description: 'What the commands need and a sandbox gives only if the owner of the machine consents.',
  },
)

/** What is started in the place of a command. Its environment is not the command's, which could change the loader. */
export interface Enclosed {
  command: string[]
  env: Record<string, string>
  /** What it reads from its stdin; undefined for nothing. */
  input?: string
  /**
   * Files and folders that are opened for it, as the descriptors from FIRST_OPENED on. A command of another run may put a
   * link in the place of one between two looks at its path.
   */
  opened?: readonly string[]
  /** Its processes belong to the group of the leader, and end when the leader does. */
  inGroup: boolean
  /** A further command that ends what may be left. */
  remove?: string[]
}

/** The first descriptor behind stdin, stdout and stderr. */
const FIRST_OPENED = 3

export interface Sandbox {
  /** Whether programs of this machine are in it. A container has those of its image. */
  readonly hasOurPrograms: boolean
  enclose(command: readonly string[], cwd: string, env: Readonly<Record<string, string>>): Enclosed
}

/** The home folder of a command: empty, and gone with the sandbox. */
export const HOME_INSIDE = '/tmp/home'

/** How bubblewrap is called on this machine. */
export interface Bubblewrap {
  /** Its absolute path. */
  program: string
  /** Whether it can forbid user namespaces inside (since 0.8). */
  forbidsNamespaces: boolean
  /** Whether it can mount what is open (since 0.10, and in older ones that were mended). */
  mountsOpened: boolean
  /** The arguments for the read-only system. */
  system: readonly string[]
  /** Further folders, of programs. */
  shared: readonly Mount[]
  /** The environment outside: PATH and nothing that a team could choose. */
  env: Record<string, string>
}

export function bubblewrap(
  { program, forbidsNamespaces, mountsOpened, system, shared, env: outside }: Bubblewrap,
  view: SandboxView,
): Sandbox {
  return {
    hasOurPrograms: true,
    enclose(command, cwd, env) {
      const isOutside = env.HOME === undefined || env.HOME === outside.HOME
      const opened: string[] = []
      const mountOption = ({ path, source, access }: Mount): string[] => {
        if (access === 'empty') return ['--tmpfs', path]
        const bind = access === 'write' ? '--bind' : '--ro-bind'
        return mountsOpened ? [`${bind}-fd`, `${FIRST_OPENED + opened.push(source) - 1}`, path] : [bind, source, path]
      }
      const own = { ...env, ...(isOutside && { HOME: HOME_INSIDE }) }
      const options = [
        ...['--unshare-all', '--unshare-user', ...(forbidsNamespaces ? ['--disable-userns'] : [])],
        ...(view.network ? ['--share-net'] : []),
        ...['--cap-drop', 'ALL', '--die-with-parent', '--clearenv'],
        ...system,
        // Root is the owner of /proc/sys outside too, with or without capabilities.
        ...['--proc', '/proc', '--remount-ro', '/proc', '--dev', '/dev'],
        ...[
          '--tmpfs',
          '/tmp',
          '--dir',
          HOME_INSIDE,
          '--dir',
          '/run',
          '--dir',
          '/var',
          '--symlink',
          '../tmp',
          '/var/tmp',
        ],
        ...[...shared, ...view.mounts].flatMap(mountOption),
        // After the mounts in them.
        ...view.mounts.filter(({ access }) => access === 'empty').flatMap(({ path }) => ['--remount-ro', path]),
        ...['--remount-ro', '/', '--chdir', cwd],
        ...Object.entries(own).flatMap(([name, value]) => ['--setenv', name, value]),
      ]
      // A NUL ends an option of bubblewrap, so what follows it in a value would be options of the team's.
      const broken = options.find(option => option.includes('\0'))
      if (broken !== undefined) throw new Error('a path or a variable of the command contains a NUL character')
      // Not as arguments: other users of the machine can read those, and variables may be secret.
      return {
        command: [program, '--args', '0', '--', ...command],
        env: outside,
        input: options.map(option => `${option}\0`).join(''),
        opened,
        inGroup: true,
      }
    },
  }
}

/** What of /etc programs need to find users, hosts, certificates and their own parts. Nothing else is shown. */
const ETC = [
  ...[
    'passwd',
    'group',
    'hosts',
    'resolv.conf',
    'nsswitch.conf',
    'services',
    'protocols',
    'ld.so.cache',
    'alternatives',
  ],
  ...['os-release', 'localtime', 'timezone', 'mime.types', 'fonts', 'ssl/certs', 'ssl/cert.pem', 'ssl/openssl.cnf'],
  ...['crypto-policies', 'pki/ca-trust', 'pki/tls/certs', 'pki/tls/cert.pem', 'pki/tls/openssl.cnf'],
]
const ETC_VERSIONED = /^(java|php|ImageMagick)-?\d[\w.-]*$/
const ROOTS = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']

/** The arguments with which bubblewrap shows the programs and libraries of this machine. */
export function systemFolders(): string[] {
  const roots = ROOTS.flatMap(path => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isSymbolicLink()) return ['--symlink', readlinkSync(path), path]
    return found ? ['--ro-bind', path, path] : []
  })
  const versioned = readdirSync('/etc').filter(name => ETC_VERSIONED.test(name))
  const shown = [...ETC, ...versioned].map(name => `/etc/${name}`)
  const whole = ['/usr', '/nix/store', ...shown].filter(path => existsSync(path))
  return [...whole.flatMap(path => ['--ro-bind', path, path]), ...roots]
}

/** How a container is made. */
export interface Container {
  /** The absolute path of podman or docker. */
  program: string
  image: string
  /** The user and group of the daemon, as which the command runs. */
  user: string
  /** The name of the home, by which its containers are found after a kill. */
  label: string
  env: Record<string, string>
}

export function container({ program, image, user, label, env: outside }: Container, view: SandboxView): Sandbox {
  return {
    hasOurPrograms: false,
    enclose(command, cwd, env) {
      const name = `cadre-${crypto.randomUUID()}`
      // PATH and HOME of this machine mean nothing in the image. Variables get other names on the way, because podman
      // itself would obey some of them.
      const names = Object.keys(env).filter(each => !(each in outside) || env[each] !== outside[each])
      const passed = Object.fromEntries(names.map(each => [`CADRE_VAR_${each}`, env[each]!]))
      const restore = names.map(each => `export ${each}="$CADRE_VAR_${each}"; unset CADRE_VAR_${each}; `).join('')
      return {
        command: [
          ...[program, 'run', '--rm', '--init', '--name', name, '--label', label],
          ...(view.network ? [] : ['--network', 'none']),
          ...['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--user', user],
          // podman without root would map the user to root of the container.
          ...(program.endsWith('/podman') && !user.startsWith('0:') ? ['--userns', 'keep-id'] : []),
          ...['--tmpfs', '/tmp:rw,exec,mode=1777', '--tmpfs', `${HOME_INSIDE}:rw,exec,mode=1777`],
          ...[...view.mounts].flatMap(({ path, source, access }) => ['--mount', mountText(path, source, access)]),
          ...['--workdir', cwd, '--env', `HOME=${HOME_INSIDE}`],
          ...Object.keys(passed).flatMap(each => ['--env', each]),
          ...['--entrypoint', 'sh', image, '-c', `${restore}exec "$@"`, 'sh', ...command],
        ],
        env: { ...outside, ...passed },
        inGroup: false,
        remove: [program, 'rm', '--force', name],
      }
    },
  }
}

/** A mount as podman and docker read it: one record of CSV. */
function mountText(path: string, source: string, access: Mount['access']): string {
  const fields =
    access === 'empty'
      ? ['type=tmpfs', `destination=${path}`]
      : ['type=bind', `source=${source}`, `destination=${path}`, ...(access === 'read' ? ['readonly'] : [])]
  return fields.map(field => (/[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')
}
