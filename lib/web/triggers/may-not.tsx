// What a page says to somebody who may not change triggers here.

import { TokenForm } from '../kit/parts.tsx'
import type { Place } from './place.ts'

export const MayNot = ({ place: { realm_id } }: { place: Place }) =>
  realm_id === undefined ? (
    <TokenForm />
  ) : (
    <p class="quiet">Operators and admins of the realm change its triggers: ask one of them for that role.</p>
  )
