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
  const when = phase.when ? [phase.when] : []
  switch (phase.type) {
    case 'standard':
      return [...when, phase.fields, ...[...phase.sources, ...phase.targets].map(({ entry }) => entry)]
    case 'gate':
      return [
        ...when,
        phase.env,
        ...phase.commands.map(({ env }) => env),
        ...(phase.review ? [phase.review.prompt] : []),
      ]
    case 'team':
      return [...when, phase.inputs]
    case 'map':
      return [...when, phase.inputs, phase.items, ...(phase.key ? [phase.key] : [])]
  }
}
