// The fields of hooks in the form of a trigger: who sends, with which secret, and which deliveries are the same.

import type { Signal } from '@preact/signals'
import type { SchemeName } from '../../triggers/hook/schemes.ts'
import { SENDERS } from '../../triggers/hook/senders.ts'
import { command } from '../kit/api.ts'
import { boundTo, Field, Select } from '../kit/fields.tsx'
import { type Draft, SecretFields } from './hook-secret.tsx'
import type { Texts } from './own-fields.ts'

export const schemeIn = ({ value: { scheme } }: Texts) => scheme as SchemeName

const SCHEMES = (Object.keys(SENDERS) as SchemeName[]).map(scheme => [scheme, SENDERS[scheme].name] as const)
/** What belongs to one scheme. Deliveries of Microsoft Graph have no id. */
const begin = (scheme: SchemeName) => ({
  ...{ scheme, header: '', prefix: '', encoding: '', id_header: '', dedup: scheme === 'graph' ? 'body' : '', same: '' },
})

export function HookFields({ texts, secret }: { texts: Texts; secret: Signal<Draft> }) {
  const scheme = schemeIn(texts)
  return (
    <>
      <div class="row fields-row">
        <Select
          label="Who sends"
          name="scheme"
          value={scheme}
          set={chosen => {
            texts.value = { ...texts.value, ...begin(chosen) }
          }}
          of={SCHEMES}
        />
        <SecretFields scheme={scheme} draft={secret} isNew />
      </div>
      <p class="small quiet fields-row">{SENDERS[scheme].todo}</p>
      <div class="row fields-row">
        {scheme === 'hmac' && <SignatureFields texts={texts} />}
        {scheme === 'bearer' && (
          <Field label="Header of the secret" placeholder="Authorization: Bearer" {...boundTo(texts, 'header')} />
        )}
        <Same texts={texts} scheme={scheme} />
      </div>
      <p class="small quiet fields-row">
        What few hooks need, such as another hash or larger bodies: <code>{command} hooks add --help</code>
      </p>
    </>
  )
}

function SignatureFields({ texts }: { texts: Texts }) {
  const { value, ...encoding } = boundTo(texts, 'encoding')
  return (
    <>
      <Field label="Header of the signature" required placeholder="X-Signature" {...boundTo(texts, 'header')} />
      <Field label="What stands before it" placeholder="sha256=" {...boundTo(texts, 'prefix')} />
      <Select
        label="It is written in"
        {...encoding}
        value={value || 'hex'}
        of={[
          ['hex', 'hex'],
          ['base64', 'base64'],
        ]}
      />
    </>
  )
}

const SAME = {
  id: 'the sender gives them the same id',
  body: 'they have the same bytes within ten minutes',
  template: 'a template says the same of them',
  none: 'never: each of them starts a run',
} as const
type Same = keyof typeof SAME

/** When a delivery that comes again starts nothing. */
function Same({ texts, scheme }: { texts: Texts; scheme: SchemeName }) {
  const choices = (Object.keys(SAME) as Same[]).filter(each => each !== 'id' || scheme !== 'graph')
  const same = (texts.value.same || choices[0]!) as Same
  const isFixed = (each: Same) => each === 'body' || each === 'none'
  return (
    <>
      <Select
        label="Two deliveries are the same when"
        {...(same !== 'template' && { name: 'dedup' })}
        value={same}
        set={chosen => {
          texts.value = { ...texts.value, same: chosen, id_header: '', dedup: isFixed(chosen) ? chosen : '' }
        }}
        of={choices.map(each => [each, SAME[each]] as const)}
      />
      {same === 'id' && scheme === 'hmac' && (
        <Field label="Header of the id" required placeholder="X-Delivery-Id" {...boundTo(texts, 'id_header')} />
      )}
      {same === 'template' && (
        <Field label="Template" required placeholder="{{ body.id }}" {...boundTo(texts, 'dedup')} />
      )}
    </>
  )
}

export const HookCondition = ({ texts }: { texts: Texts }) => (
  <div class="row fields-row">
    <Field label="Only when (a CEL expression)" placeholder={'body.action == "opened"'} {...boundTo(texts, 'when')} />
  </div>
)
