// `keys`: the keys with which `publish` signs. Only their public halves are shown.

import { commandLine } from '../../../program/called-as.ts'
import { line } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { recordInHome } from '../../home/audit.ts'
import { homeFolder } from '../../home/home.ts'
import { addPublishKey, publishKeys, usePublishKey } from '../../home/publish-keys.ts'
import { table } from '../terminal/table.ts'

interface Options {
  home?: string
  json?: boolean
}

export async function newKey({ home, json }: Options): Promise<void> {
  const { key, created_at } = await addPublishKey(homeFolder(home))
  await recordInHome(homeFolder(home), { action: 'keys/new', target: key })
  print(line`${json ? JSON.stringify({ key, created_at, used: true }) : key}`)
  printMessage(line`publish signs with it from now on; daemons that list it in packages.trust run what it signed`)
}

export async function listKeys({ home, json }: Options): Promise<void> {
  const keys = publishKeys(homeFolder(home)).map(({ key, created_at }, at) => ({ key, created_at, used: at === 0 }))
  if (json) return void printJson(keys)
  if (keys.length === 0)
    printMessage(line`no keys: publish signs nothing; make one with: ${commandLine('keys', 'new')}`)
  const rows = keys.map(({ key, created_at, used }) => [
    key,
    new Date(created_at).toISOString().slice(0, 10),
    used ? 'used by publish' : '',
  ])
  print(table(rows))
}

export async function useKey(beginning: string, { home }: Options): Promise<void> {
  const { key } = await usePublishKey(homeFolder(home), beginning)
  await recordInHome(homeFolder(home), { action: 'keys/use', target: key })
  print(line`${key}`)
}
