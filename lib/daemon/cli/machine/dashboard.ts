// `dashboard`: opens the page of the process that holds the home, with the local token. Other users of a machine can
// read the arguments of a command, so the browser is given a private file that leads to the page.

import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CadreError } from '../../../error.ts'
import { pageAddress } from '../../../http/page-address.ts'
import { commandLine } from '../../../program/called-as.ts'
import { line } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { homeFolder, readToken } from '../../home/home.ts'
import { addressOf } from '../backend/home-client.ts'

/** An opener that has not failed by then has handed the page to a browser. */
const PATIENCE_MS = 2_000

export async function dashboard({ home: given, open = true }: { home?: string; open?: boolean }): Promise<void> {
  const home = homeFolder(given)
  const found = await addressOf(home)
  const token = readToken(home)
  if (found === null || token === null) {
    throw new CadreError('unavailable', `no daemon serves ${home}: start one with: ${commandLine('serve')}`)
  }
  const address = pageAddress(found)
  const url = `${address}/#token=${token}`
  if (open && (await opened(home, url))) print(line`opened ${address} in the browser`)
  else print(line`${url}`)
}

/** Whether a browser could be opened. */
async function opened(home: string, url: string): Promise<boolean> {
  const opener = openerOf(process.platform, process.env)
  if (opener === null) return false
  const file = join(home, 'dashboard.html')
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">\n`, { mode: 0o600 })
  // The mode above is that of a new file.
  chmodSync(file, 0o600)
  const child = Bun.spawn([opener, file], { stdio: ['ignore', 'ignore', 'ignore'], detached: true })
  child.unref()
  const patience = Promise.withResolvers<number>()
  const timer = setTimeout(() => patience.resolve(0), PATIENCE_MS)
  const code = await Promise.race([child.exited, patience.promise])
  clearTimeout(timer)
  return code === 0
}

/** The program that opens a file, or null where there is none or no screen. */
function openerOf(platform: string, { DISPLAY, WAYLAND_DISPLAY }: Record<string, string | undefined>): string | null {
  if (platform === 'darwin') return Bun.which('open')
  return DISPLAY || WAYLAND_DISPLAY ? Bun.which('xdg-open') : null
}
