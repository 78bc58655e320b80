// `settings get|set|list`: through the process that holds the home, or in its file when none does. Secrets are masked.

import { discover } from '../../../agent/catalogue.ts'
import { CadreError } from '../../../error.ts'
import type { Json } from '../../../json.ts'
import { createLog } from '../../../log/log.ts'
import { isEntryText, openSettings } from '../../../settings/settings.ts'
import { createPaint, line, lines } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { GetSetting, ListSettings, SetSetting } from '../../../wire/calls/settings.ts'
import { refuseSessionForm } from '../../access/api-key.ts'
import { homeFolder, makeHome } from '../../home/home.ts'
import { type Callee, withHome } from '../backend/home-client.ts'
import { answer, answering } from '../backend/local-answers.ts'
import { table } from '../terminal/table.ts'

interface Options {
  home?: string
  json?: boolean
}

export async function listSettings({ home, json }: Options): Promise<void> {
  const settings = await access(home, async daemon => (await daemon.call(ListSettings, {})).settings)
  if (json) printJson(settings)
  else print(table(settings.map(({ key, value }) => [key, shown(value)])))
}

export async function getSetting(key: string, { home }: Options): Promise<void> {
  const { value } = await access(home, daemon => daemon.call(GetSetting, { key }))
  print(lines(shown(value)))
}

/**
 * Sets a setting. `-` reads the value from stdin, so that a secret does not appear in the shell history. Without a
 * value the setting is removed.
 */
export async function setSetting(key: string, value: string | undefined, { home }: Options): Promise<void> {
  if (value === undefined) {
    await access(home, daemon => daemon.call(SetSetting, { key, value: null }))
    return warnOfAccounts(homeFolder(home))
  }
  const text = value === '-' ? (await Bun.stdin.text()).replace(/\r?\n$/, '') : value
  if (text === '') throw new CadreError('invalid_request', `${key}: the value is empty`)
  await storeSetting(home, key, fromText(key, text))
  if (key === 'hub.api_key') await storeAddress(homeFolder(home))
}

/** Says which accounts of `notify.on_fail` are gone, because nobody would hear of a failure there. */
async function warnOfAccounts(home: string): Promise<void> {
  const catalogue = await discover({ home, extra: process.env.CADRE_AGENTS })
  const settings = await openSettings(home, { log: createLog({ level: 'warn' }) })
  for (const { message } of settings.onFailProblems(catalogue, 'names')) {
    printMessage(line`${createPaint(process.stderr).yellow('warning')}  ${message}`)
  }
}

/** Without an address beside it `hub.api_key` is for no hub, so the one that the commands of this home call is stored. */
async function storeAddress(home: string): Promise<void> {
  const { hubCredentials, knownHub } = await import('../kit/hub-client.ts')
  const url = await knownHub(home, {})
  if (url === null || (await hubCredentials(home)).home !== null) return
  await storeSetting(home, 'hub.url', url)
  printMessage(line`hub.url is ${url} now: hub.api_key is sent to this hub only`)
}

export async function storeSetting(home: string | undefined, key: string, value: Json): Promise<void> {
  await access(home, daemon => daemon.call(SetSetting, { key, value }))
}

/**
 * The value of a text: JSON if it is a list, an object, true or false, and otherwise text. A number stays text, because
 * it may be a credential. A named secret, which may itself be JSON, stays text unless it has the form `{"value": …,
 * "teams": […]}`.
 */
function fromText(key: string, text: string): Json {
  if (/^(environments\.[^.]+\.)?secrets\.[^.]+(\.value)?$/.test(key)) return isEntryText(text) ? JSON.parse(text) : text
  if (!/^(true|false)$|^[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const shown = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** `work` may be called more than once, because a process that holds the home may release it in between. */
function access<T>(given: string | undefined, work: (daemon: Callee) => Promise<T>): Promise<T> {
  const home = homeFolder(given)
  return withHome(home, work, async () => {
    const catalogue = await discover({ home, extra: process.env.CADRE_AGENTS })
    const settings = await openSettings(home, { log: createLog({ level: 'warn' }) })
    return work(
      answering(
        answer(ListSettings, async () => ({ settings: settings.list(catalogue) })),
        answer(GetSetting, async ({ key }) => settings.get(key, catalogue)),
        answer(SetSetting, async ({ key, value }) => {
          if (key === 'hub.api_key' && value !== null) refuseSessionForm(await settings.lookUp(value))
          makeHome(home)
          const { recordInHome } = await import('../../home/audit.ts')
          const entry = { action: 'settings/set', target: value === null ? `${key}, removed` : key }
          await settings.set(key, value, catalogue, () => recordInHome(home, entry))
          return { key, value }
        }),
      ),
    )
  })
}
