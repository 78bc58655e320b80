// The pages of triggers, of a home and of a hub.

import type { ComponentChildren } from 'preact'
import { route } from '../kit/route.ts'
import { Triggers } from './list.tsx'
import type { Place } from './place.ts'
import { NewTrigger } from './trigger-form.tsx'
import { TriggerPage } from './trigger-page.tsx'

/**
 * `id`: of a trigger, or the name of another page. `place`: where triggers are listed and added. `placeOf`: what the user
 * may do in the realm of a trigger. `children`: filters of the list.
 */
export function TriggerPages({
  id,
  place,
  placeOf,
  children,
}: {
  id: string | undefined
  place: Place
  placeOf(realm_id: string | undefined): Place
  children?: ComponentChildren
}) {
  if (id === 'new') {
    return (
      <NewTrigger key={place.realm_id} place={place}>
        {children}
      </NewTrigger>
    )
  }
  if (id === undefined || id === 'calendar') {
    return (
      <Triggers place={place} tab={id}>
        {children}
      </Triggers>
    )
  }
  return <TriggerPage key={id} id={id} tab={route.value.parts[2]} placeOf={placeOf} />
}
