// `keys`: the keys with which `publish` signs. Only their public halves are shown.

import { commandLine } from '../../called-as.ts'
import { homeFolder } from '../home.ts'
import { addPublishKey, publishKeys, usePublishKey } from '../publish-keys.ts'
import { table } from '../terminal/table.ts'

interface Options {
  home?: string
  json?: boolean
}

export async function newKey({ home, json }: Options): Promise<void> {
  const { key, created_at } = await addPublishKey(homeFolder(home))
  process.stdout.write(`${json ? JSON.stringify({ key, created_at, used: true }) : key}\n`)
  process.stderr.write('publish signs with it from now on; daemons that list it in packages.trust run what it signed\n')
}

export async function listKeys({ home, json }: Options): Promise<void> {
  const keys = publishKeys(homeFolder(home)).map(({ key, created_at }, at) => ({ key, created_at, used: at === 0 }))
  if (json) return void process.stdout.write(`${JSON.stringify(keys, null, 2)}\n`)
  if (keys.length === 0)
    process.stderr.write(`no keys: publish signs nothing; make one with: ${commandLine('keys', 'new')}\n`)
  const rows = keys.map(({ key, created_at, used }) => [
    key,
    new Date(created_at).toISOString().slice(0, 10),
    used ? 'used by publish' : '',
  ])
  for (const line of table(rows)) process.stdout.write(`${line}\n`)
}

export async function useKey(beginning: string, { home }: Options): Promise<void> {
  const { key } = await usePublishKey(homeFolder(home), beginning)
  process.stdout.write(`${key}\n`)
}
