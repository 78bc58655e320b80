// Mints a token: for a program, with its grant as a matrix, or for a daemon.

import { useSignal } from '@preact/signals'
import { GenerateToken } from '../../../wire/calls/auth.ts'
import { useAction, type Work } from '../../kit/actions.tsx'
import { bound, Field, handleSubmit, Select } from '../../kit/fields.tsx'
import { Failure } from '../../kit/parts.tsx'
import { RealmSelect, useRealm } from '../kit/realm-choice.tsx'
import { fullMatrix, grantOf, type Matrix, MatrixForm } from './grant.tsx'

const LIFETIMES = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
  ['', 'until it is revoked'],
] as const

export function NewToken({ onCreated }: { onCreated(secret: { text: string; type: string }): void }) {
  const type = useSignal<'user' | 'realm'>('user')
  const name = useSignal('')
  const days = useSignal('90')
  const matrix = useSignal<Matrix>(fullMatrix('read'))
  const everywhere = useSignal(true)
  const realm = useRealm()
  const chosen = useSignal('')
  const { busy, error, run } = useAction()
  const realmId = chosen.value || realm?.id
  const mint: Work = async send => {
    const inOneRealm = type.value === 'realm' || !everywhere.value
    const { token } = await send(GenerateToken, {
      type: type.value,
      name: name.value.trim(),
      ...(days.value && { expires_in_days: Number(days.value) }),
      ...(type.value === 'realm'
        ? { realm_ids: [realmId!] }
        : { permissions: grantOf(matrix.value, inOneRealm ? { realms: [realmId!] } : { orgs: '*', realms: '*' }) }),
    })
    onCreated({ text: token, type: type.value })
    name.value = ''
  }
  const realmChoice = <RealmSelect value={realmId ?? ''} set={bound(chosen).set} />
  return (
    <form class="card" aria-label="New token" onSubmit={handleSubmit(() => run(mint))}>
      <h2>New token</h2>
      <div class="row fields-row">
        <Select
          label="For"
          {...bound(type)}
          of={[
            ['user', 'a program that acts for you'],
            ['realm', 'a daemon that enrols in a realm'],
          ]}
        />
        <Field
          label="Name"
          required
          maxLength={200}
          placeholder={type.value === 'realm' ? 'build machine' : 'nightly report'}
          {...bound(name)}
        />
        <Select label="Works for" {...bound(days)} of={LIFETIMES} />
        {type.value === 'realm' && realmChoice}
      </div>
      {type.value === 'user' && (
        <details class="part">
          <summary>What it may do</summary>
          <MatrixForm of={matrix} />
          <div class="row fields-row">
            <Select
              label="Where"
              value={everywhere.value ? 'all' : 'one'}
              set={value => {
                everywhere.value = value === 'all'
              }}
              of={[
                ['all', 'in all my orgs and realms'],
                ['one', 'in one realm'],
              ]}
            />
            {!everywhere.value && realmChoice}
          </div>
          <p class="small quiet">A token never does more than your own roles allow.</p>
        </details>
      )}
      {type.value === 'realm' && (
        <p class="small quiet">
          A daemon may report its runs, take jobs and read packages of its realm, and nothing else.
        </p>
      )}
      <div class="row">
        <button type="submit" disabled={busy || (type.value === 'realm' && !realmId)}>
          Mint
        </button>
      </div>
      <Failure of={error} />
    </form>
  )
}
