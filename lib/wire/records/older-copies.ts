// What a hub says of the older copy of its database on which it is, or was last.

import type { Static } from 'typebox'
import { named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { AnyText as Text, Time } from '../parts.ts'

/** A daemon of which the hub does not know yet what it executed since the copy was made. */
const Awaited = Type.Object({
  daemon_id: Text,
  name: Text,
  last_seen_at: nullable(Time),
  why: Type.String({ description: 'Why it has not reported, and what can be done.' }),
})

export const OlderCopy = named('older_copy', {
  id: Text,
  kind: Type.Enum(['restored', 'failover', 'behind'], {
    description:
      'What was noticed: the database or its file is another one, another server goes on with it, or a daemon has seen more commits than it has.',
  }),
  found_at: Type.Integer({ description: 'When the hub noticed it, in epoch milliseconds.' }),
  written_at: Type.Integer({ description: 'When the copy was last written to, in epoch milliseconds.' }),
  lost: nullable(Type.Boolean(), { description: 'Whether commits were lost; null while that is not known.' }),
  ended_at: nullable(Time, { description: 'Since when the hub trusts its database again.' }),
})

export const Reconciliation = Type.Object({
  realm_id: Text,
  older_copy: nullable(OlderCopy, { description: 'The last one that concerns the realm.' }),
  held: Type.Integer({ description: 'How many jobs wait for it.' }),
  awaited: Type.Array(Awaited, { description: 'The daemons that have not reported.' }),
  passed: Type.Array(Type.Object({ daemon_id: Text, name: Text }), {
    description: 'The daemons without which somebody has decided to go on.',
  }),
  lost: Type.Array(Type.String(), { description: 'What only the hub knew and has lost, as far as it knows.' }),
  came_back: Type.Array(Type.String(), { description: 'What had been ended since and counts again.' }),
})
export type Reconciliation = Static<typeof Reconciliation>
