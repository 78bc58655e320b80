// The secret of a hook on its way to the server: a person types it, or the page makes one and shows it once. It stands in
// no text of a form, in no address and in no store of the browser, and is forgotten when the page is left.

import { type Signal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { SchemeName } from '../../triggers/hook/schemes.ts'
import { SENDERS } from '../../triggers/hook/senders.ts'
import { Copyable, CopyableSecret } from '../kit/copyable.tsx'
import { Field, Select } from '../kit/fields.tsx'
import type { Shown } from './place.ts'

type Way = 'made' | 'typed' | 'later'

const WAYS: Readonly<Record<Way, string>> = {
  made: 'made here, and shown once',
  typed: 'typed: the sender has one',
  later: 'added later: the sender wants the URL first',
}

/** `way` is null until somebody chooses one. */
export interface Draft {
  way: Way | null
  text: string
}
export const NO_SECRET: Draft = { way: null, text: '' }

function waysOf(scheme: SchemeName, isNew: boolean): readonly Way[] {
  const { maker } = SENDERS[scheme]
  if (maker === 'anyone') return ['made', 'typed']
  return maker === 'sender_later' && isNew ? ['later', 'typed'] : ['typed']
}

/** The first way is the usual one. Another scheme may not have the one that was chosen. */
function wayOf(scheme: SchemeName, { way }: Draft, isNew: boolean): Way {
  const ways = waysOf(scheme, isNew)
  return ways.find(each => each === way) ?? ways[0]!
}

interface Props {
  scheme: SchemeName
  draft: Signal<Draft>
  /** Whether the hook is added as well. */
  isNew: boolean
}

export function SecretFields({ scheme, draft, isNew }: Props) {
  const ways = waysOf(scheme, isNew)
  const way = wayOf(scheme, draft.value, isNew)
  const name = isNew ? 'secret' : 'add_secret'
  return (
    <>
      {ways.length > 1 && (
        <Select
          label="The secret is"
          {...(way !== 'typed' && { name })}
          value={way}
          set={chosen => {
            draft.value = { way: chosen, text: '' }
          }}
          of={ways.map(each => [each, WAYS[each]] as const)}
        />
      )}
      {way === 'typed' && (
        <Field
          label="Secret"
          name={name}
          type="password"
          autocomplete="new-password"
          required
          value={draft.value.text}
          set={text => {
            draft.value = { ...draft.value, text }
          }}
        />
      )}
    </>
  )
}

interface Given {
  way: Way
  /** One that is made in place of a later one is known to nobody, so that no delivery fits it. */
  secret: string
}

export function secretOf(scheme: SchemeName, draft: Draft, isNew: boolean): Given {
  const way = wayOf(scheme, draft, isNew)
  return { way, secret: way === 'typed' ? draft.text : made(scheme) }
}

/** 32 bytes at random. Hexadecimal digits are also right where the key is written in base64. */
function made(scheme: SchemeName): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  if (scheme === 'gitlab' || scheme === 'standard') return `whsec_${btoa(String.fromCharCode(...bytes))}`
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}

const last = signal<(Given & { id: string }) | null>(null)

/** Remembers what the page of the hook shows until it is left. */
export function showOnce(id: string, given: Given): void {
  if (given.way !== 'typed') last.value = { id, ...given }
}

export function SecretOnce({ of: { id }, url }: { of: Shown; url: string }) {
  const forget = () => {
    last.value = null
  }
  useEffect(() => forget, [])
  const given = last.value
  if (given?.id !== id) return null
  if (given.way === 'later') {
    return (
      <div class="notice awaiting_input" role="status">
        Every delivery is refused until you add the secret that the sender shows when it has the URL.
      </div>
    )
  }
  return (
    <CopyableSecret title="The secret of the hook." text={given.secret}>
      <p class="small quiet fields-row">The sender takes it together with the URL:</p>
      <Copyable title="The URL of the hook" text={url} />
    </CopyableSecret>
  )
}
