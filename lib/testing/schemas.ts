// What the schema of an entry must refuse, with the path of the problem.

import { expect } from 'bun:test'
import type { TSchema } from 'typebox'
import { problems } from '../schema/schema.ts'
import { teamJsonSchema } from '../team/team.ts'
import { check, type Trial } from './check.ts'
import type { Vendor } from './fake-vendor.ts'

/** No field of an agent accepts such an object. */
const NONSENSE = { nonsense_of_the_test: [null] }

export function schemas<V extends Vendor>({ subject, call, handler, open, example }: Trial<V>): void {
  const { required = [], properties = {} } = handler.entry as { required?: string[]; properties?: Properties }
  const entryOf = async () => {
    await using vendor = await open()
    return example(vendor).entry
  }
  const pathsOf = (entry: object) => problems(handler.entry, entry).map(({ path }) => path)

  check('takes the entry of the example', async () => {
    expect(problems(handler.entry, await entryOf())).toEqual([])
  })

  check('refuses an unknown field, by its path', async () => {
    expect(pathsOf({ ...(await entryOf()), nonsense_of_the_test: 1 })).toEqual(['/nonsense_of_the_test'])
  })

  if ((subject.agent.actions?.[call]?.direction ?? call) === 'phase') {
    check('leaves to the phase the fields that every phase has, `name` among them', () => {
      expect(fieldsOfPhases().filter(field => field in properties)).toEqual([])
    })
  }

  for (const field of required) {
    check(`refuses an entry without ${field}, by its path`, async () => {
      const { [field]: _, ...rest } = await entryOf()
      expect(pathsOf(rest)).toContain(`/${field}`)
    })
  }

  for (const [field, schema] of Object.entries(properties)) {
    if (takesAnything(schema)) continue
    check(`refuses nonsense as ${field}, by its path`, async () => {
      const paths = pathsOf({ ...(await entryOf()), [field]: NONSENSE })
      expect(paths.filter(path => path === `/${field}` || path.startsWith(`/${field}/`))).not.toEqual([])
    })
  }
}

/** A phase keeps these for itself: an agent that is called with the phase's own fields never sees them. */
function fieldsOfPhases(): string[] {
  const { $defs } = teamJsonSchema({ names: () => [], get: () => undefined }) as { $defs: { phase: TSchema } }
  return Object.keys(($defs.phase as { properties?: object }).properties ?? {})
}

type Properties = Record<string, TSchema>

/** `Type.Unknown()` and `Type.Any()`. */
function takesAnything(schema: TSchema): boolean {
  return problems(schema, NONSENSE).length === 0
}
