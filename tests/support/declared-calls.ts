// Every call that lib/wire/calls declares, by its name.

import { join } from 'node:path'
import { Glob } from 'bun'
import { isObject } from '../../lib/json.ts'
import type { Call, Export, Transfer } from '../../lib/wire/call.ts'

export type Declared = Call | Export | Transfer
const folder = join(import.meta.dir, '../../lib/wire/calls')

const isCall = (value: unknown): value is Declared => isObject(value) && typeof value.path === 'string'

export const DECLARED: readonly { file: string; name: string; call: Declared }[] = (
  await Promise.all(
    [...new Glob('*.ts').scanSync(folder)].sort().map(async file => {
      const found: Record<string, unknown> = await import(join(folder, file))
      return Object.entries(found).flatMap(([name, call]) => (isCall(call) ? [{ file, name, call }] : []))
    }),
  )
).flat()

export const methodOf = (call: Declared): string => ('body' in call ? 'POST' : (call.method ?? 'GET'))
