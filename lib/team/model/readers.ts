// Who reads the result of a phase: the outputs of its team, and the phases whose expressions name it.

import type { Phase, Team } from './compiled-team.ts'

interface Readers {
  outputs: string[]
  phases: string[]
}

export function readersOf({ outputs, phases }: Team, phase: string): Readers {
  const naming = outputs.filter(({ value }) => value.phases.has(phase))
  const reading = phases.filter(each => expressionsOf(each).some(({ phases }) => phases.has(phase)))
  return { outputs: naming.map(({ name }) => name), phases: reading.map(({ name }) => name) }
}

function expressionsOf(phase: Phase): { readonly phases: ReadonlySet<string> }[] {
  const conditions = [...(phase.when ? [phase.when] : []), ...(phase.repeat ? [phase.repeat.until] : [])]
  switch (phase.type) {
    case 'standard':
      return [...conditions, phase.fields, ...[...phase.sources, ...phase.targets].map(({ entry }) => entry)]
    case 'gate':
      return [
        ...conditions,
        phase.env,
        ...phase.commands.map(({ env }) => env),
        ...(phase.review ? [phase.review.prompt] : []),
      ]
    case 'team':
      return [...conditions, phase.inputs]
    case 'map':
      return [...conditions, phase.inputs, phase.items, ...(phase.key ? [phase.key] : [])]
  }
}
