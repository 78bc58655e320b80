// Reads the values of options that several commands have.

import { InvalidArgumentError } from 'commander'

/** An option that may be given several times. */
export const collect = (value: string, all: string[] = []): string[] => [...all, value]

/** The number of items that a list shows. */
export function count(text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= 1 && value <= 100) return value
  throw new InvalidArgumentError('Expected a number from 1 to 100.')
}

export function offset(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a number.')
}

/** The address of a hub after `--hub`, which may also stand alone. Without this check `--hub RUN` would take the run. */
export function hubAddressIn(text: string): string {
  if (/^https?:\/\//.test(text)) return text
  throw new InvalidArgumentError(`Expected an address such as https://hub.example.com. Write \`${text} --hub\`?`)
}

/** The name of a run, whose length the daemon and the hub limit. */
export function runName(text: string): string {
  if (text.length >= 1 && text.length <= 200) return text
  throw new InvalidArgumentError('Expected a name of 1 to 200 characters.')
}

/** How long a token is valid. */
export function days(text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= 1 && value <= 3_650) return value
  throw new InvalidArgumentError('Expected a number of days from 1 to 3650.')
}

export interface AtMost {
  count: number
  per: string
}

/** `3/1h`: how many start within how long. An empty text stays, and means no limit. */
export function atMost(text: string): AtMost | '' {
  if (text === '') return text
  const [, count, per] = /^([1-9][0-9]{0,4})\/(.+)$/.exec(text) ?? []
  if (count !== undefined) return { count: Number(count), per: per! }
  throw new InvalidArgumentError('Expected how many start within how long, such as 3/1h.')
}
