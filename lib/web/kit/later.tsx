// Parts of a page whose code is loaded when somebody opens them, so that the first page has few bytes.

import type { FunctionComponent } from 'preact'
import { Failure, useLoaded } from './parts.tsx'

/** `frame` is the element that stands for the part until its code is there. */
export function later<Props extends object>(
  name: string,
  load: () => Promise<FunctionComponent<Props>>,
  frame: 'main' | 'div' = 'main',
) {
  /** The part is shown at once when it is opened again. */
  let known: FunctionComponent<Props> | null = null
  return (props: Props) => {
    const Frame = frame
    const { error } = useLoaded(name, async () => {
      known = await load()
      return name
    })
    if (known) {
      const Part = known
      return <Part {...props} />
    }
    return (
      <Frame aria-busy={!error}>
        <Failure of={error} />
      </Frame>
    )
  }
}
