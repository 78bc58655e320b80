// `backup` and `restore` of a home, and what they say about it.

import { resolve } from 'node:path'
import { commandLine } from '../../../program/called-as.ts'
import { sizeText } from '../../../size.ts'
import { line } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { backupHome, restoreHome } from '../../home/backup.ts'
import { existingHome, homeFolder } from '../../home/home.ts'

export function backup(file: string, options: { home?: string }): void {
  const home = existingHome(options.home)
  const { bytes, runs, files, leftOut } = backupHome(home, file)
  print(line`Backed up ${home} to ${resolve(file)}: ${runs} runs, ${files} files, ${sizeText(bytes)}.`)
  print(
    line`The backup has the credentials of settings.yml, the key that opens secrets of runs, and keys for publishing:`,
  )
  print(
    line`keep it as safe as them. The backup is not encrypted. It lacks what settings refer to (env, file, keychain, cmd).`,
  )
  if (leftOut.length > 0) print(line`The backup also lacks files that cadre has not written: ${leftOut.join(', ')}.`)
}

export async function restore(file: string, options: { home?: string }): Promise<void> {
  const home = homeFolder(options.home)
  const { made_at, folder, host, runs, files, unfinished } = await restoreHome(home, file)
  print(line`Restored ${home}: ${runs} runs, ${files} files, as they were in ${folder} on ${host} at ${iso(made_at)}.`)
  if (unfinished > 0) {
    const one = unfinished === 1
    print(
      line`${one ? 'One run was' : `${unfinished} runs were`} unfinished, and the home there may have continued ${one ? 'it: it waits' : 'them: they wait'} until you resume or cancel ${one ? 'it' : 'each'}.`,
    )
  }
  print(
    line`Start it: ${commandLine('serve')}. At a hub, this home becomes a new daemon. If it replaces the home there,`,
  )
  print(line`which you will not start again, first call: ${commandLine('home', 'moved')}`)
}

const iso = (at: number): string => new Date(at).toISOString()
