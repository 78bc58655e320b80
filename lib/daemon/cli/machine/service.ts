// `service install`, `status`, `remove` and `print`: the daemon or the hub as a service of systemd or launchd.

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CadreError, messageOf } from '../../../error.ts'
import { commandLine, hubCommandLine } from '../../../program/called-as.ts'
import { line, lines } from '../../../text/printable.ts'
import { didYouMean } from '../../../text/spelling.ts'
import { print, printMessage } from '../../../text/terminal.ts'
import { homeFolder } from '../../home/home.ts'
import { SERVED, type Served, type Unit, unitOf } from './service-unit.ts'

interface Flags {
  system?: boolean
  start?: boolean
  home?: string
}

const printLine = (text: string) => printMessage(line`${text}`)

/** Writes the service and starts it, now and with the machine. An older one is replaced. */
export function installService(program: string | undefined, flags: Flags): void {
  const { system = false, start = true } = flags
  const served = servedOf(program)
  const unit = unitOf(served, system, homeOf(flags))
  changing(unit, () => {
    mkdirSync(dirname(unit.file), { recursive: true })
    writeFileSync(unit.file, unit.text, { mode: 0o644 })
  })
  print(line`${unit.file}`)
  if (unit.settings !== null)
    printLine(`settings that the service needs, such as CADRE_HUB_URL=…, belong in ${unit.settings}`)
  if (!start) return
  if (process.platform === 'darwin') {
    exitOf(['launchctl', 'bootout', `${domain()}/${unit.name}`], 'ignore')
    must(['launchctl', 'bootstrap', domain(), unit.file])
    printLine(`started; it logs to ${unit.log}`)
  } else {
    const why = whyUnheard(system)
    if (why !== null) {
      const instead = served === 'hub' ? hubCommandLine('serve') : commandLine('serve')
      throw new CadreError(
        'unavailable',
        `the service cannot start, because ${why}: keep \`${instead}\` running in another way; --no-start only writes the file`,
      )
    }
    must([...systemctl(system), 'enable', unit.name])
    must([...systemctl(system), 'restart', unit.name])
    printLine(`started; its log: journalctl ${system ? '' : '--user '}--unit ${unit.name} --follow`)
    if (!system) printLine('it ends when you log out, unless you have called: loginctl enable-linger')
  }
}

/** The exit code: 0 while it runs. */
export function serviceStatus(program: string | undefined, { system = false }: Flags): number {
  const { name, file } = unitOf(servedOf(program), system)
  if (!existsSync(file)) {
    printLine(
      `there is no ${file}; install it with: ${commandLine('service', 'install', ...(program ? [program] : []))}`,
    )
    return 1
  }
  const command =
    process.platform === 'darwin'
      ? ['launchctl', 'print', `${domain()}/${name}`]
      : [...systemctl(system), '--no-pager', 'status', name]
  return exitOf(command, 'inherit') === 0 ? 0 : 1
}

/** Stops the service and removes its file, also where no systemd answers. Its state stays. */
export function removeService(program: string | undefined, { system = false }: Flags): void {
  const unit = unitOf(servedOf(program), system)
  if (!existsSync(unit.file)) throw new CadreError('not_found', `there is no ${unit.file}`)
  if (process.platform === 'darwin') exitOf(['launchctl', 'bootout', `${domain()}/${unit.name}`], 'inherit')
  else exitOf([...systemctl(system), 'disable', '--now', unit.name], 'inherit')
  changing(unit, () => rmSync(unit.file))
  const why = process.platform === 'darwin' ? null : whyUnheard(system)
  if (why !== null) printLine(`nothing was stopped, because ${why}`)
  printLine(`removed ${unit.file}; the state of the service was not touched`)
}

/** What `installService` would write. */
export function printService(program: string | undefined, flags: Flags): void {
  print(lines(unitOf(servedOf(program), flags.system ?? false, homeOf(flags)).text.trimEnd()))
}

/** The home that a service of this user has to be told; null for the usual one, and for a service of the system. */
function homeOf({ system, home }: Flags): string | null {
  if (system) {
    if (home === undefined) return null
    throw new CadreError('invalid_request', 'a service of the system has a home of its own: leave out --home')
  }
  const found = homeFolder(home)
  return found === join(homedir(), '.cadre') ? null : found
}

function servedOf(program = 'daemon'): Served {
  const found = SERVED.find(each => each === program)
  if (found) return found
  throw new CadreError('invalid_request', `there is no service ${program}${didYouMean(program, SERVED)}: daemon or hub`)
}

const systemctl = (system: boolean): string[] => (system ? ['systemctl'] : ['systemctl', '--user'])

/** Lets systemd read the files of units again. Returns why it did not; null if it did. */
function whyUnheard(system: boolean): string | null {
  const code = exitOf([...systemctl(system), 'daemon-reload'], 'inherit')
  if (code === 0) return null
  if (code === 127) return 'systemctl is not on PATH'
  return `no systemd answers ${system ? 'here' : 'for your user here'}, as in a container or without a login session`
}

/** The services of this user while logged in. */
const domain = (): string => `gui/${process.getuid!()}`

/** The exit code of a command; 127 where it does not exist. */
function exitOf(command: readonly string[], output: 'inherit' | 'ignore'): number {
  if (Bun.which(command[0]!) === null) return 127
  return Bun.spawnSync([...command], { stdio: ['ignore', output, output] }).exitCode
}

function must(command: readonly string[]): void {
  const code = exitOf(command, 'inherit')
  if (code === 0) return
  const why = code === 127 ? `${command[0]} is not on PATH` : `it ended with ${code}`
  throw new CadreError('unavailable', `\`${command.join(' ')}\` failed: ${why}; --no-start only writes the file`)
}

function changing({ file }: Unit, change: () => void): void {
  try {
    change()
  } catch (error) {
    const needsRoot = ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')
    throw new CadreError('forbidden', needsRoot ? `${file}: only root may change it: use sudo` : messageOf(error))
  }
}
