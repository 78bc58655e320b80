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
    line`It has the credentials of settings.yml, the key that opens secrets of runs, and keys for publishing: keep it`,
  )
  print(line`as safe as them. It is not encrypted. What settings refer to (env, file, keychain, cmd) is not in it.`)
  if (leftOut.length > 0) print(line`Not in it, because cadre does not keep it there: ${leftOut.join(', ')}.`)
}

export async function restore(file: string, options: { home?: string }): Promise<void> {
  const home = homeFolder(options.home)
  const { made_at, folder, host, runs, files, unfinished } = await restoreHome(home, file)
  print(line`Restored ${home}: ${runs} runs, ${files} files, as they were in ${folder} on ${host} at ${iso(made_at)}.`)
  if (unfinished > 0) {
    const one = unfinished === 1
    print(
      line`${one ? 'One run was' : `${unfinished} runs were`} unfinished, and may have gone on there: ${one ? 'it waits' : 'they wait'} until you resume or cancel ${one ? 'it' : 'each'}.`,
    )
  }
  print(line`Start it: ${commandLine('serve')}. At a hub it becomes a daemon of its own. If the home there will not be`)
  print(line`started again, and this one takes its place, call this before: ${commandLine('home', 'moved')}`)
}

const iso = (at: number): string => new Date(at).toISOString()
