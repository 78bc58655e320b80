// Why a run ended as it did: the path through the tree to its cause, and the writes to other systems.

import { GetWhy } from '../../wire/calls/runs.ts'
import { call } from '../kit/api.ts'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { Writes } from './attempts.tsx'
import type { Detail } from './live.ts'

export function Why({ run }: { run: Detail }) {
  const found = useLoaded(`${run.run_id} ${run.state}`, () => call(GetWhy, { run_id: run.run_id }))
  if (found.error) return <Failure of={found.error} />
  if (!found.data) return <div aria-busy="true" />
  const { text, chain, written } = found.data
  return (
    <>
      <pre class="prose">{text}</pre>
      {chain.length > 0 && (
        <>
          <h2>The path to the cause</h2>
          <ol class="chain">
            {chain.map(cause => (
              <li key={cause.run_id + cause.phase}>
                <State of={cause.state} bare />
                <div>
                  <a href={withQuery(to('runs', cause.run_id), { phase: cause.phase ?? '' })}>
                    {cause.run_name ?? cause.team}
                    {cause.phase && ` › ${cause.phase}`}
                  </a>
                  {cause.error && <p class="quiet wrap">{cause.error.message}</p>}
                </div>
              </li>
            ))}
          </ol>
        </>
      )}
      {written.length > 0 && (
        <>
          <h2>Written outside</h2>
          <Writes of={written} withPath />
        </>
      )}
    </>
  )
}
