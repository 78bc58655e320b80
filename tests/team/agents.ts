// Small agents for the tests of team.yml: each shows one way in which an agent can be declared.

import { Type } from '../../lib/agent/cadre.ts'
import { type AgentDefinition, agent, literal, secret } from '../../lib/agent/define.ts'
import type { AgentLookup } from '../../lib/team/compile/compilation.ts'

const base = { type: 'connector', version: '1.0.0', description: 'A test agent.' } as const
const settings = Type.Object({ base_url: Type.String(), api_token: secret() })
const run = async () => ({ text: 'done' })
const target = (fields: Record<string, ReturnType<typeof Type.String>>) =>
  Type.Object({ name: Type.String(), ...fields })

const agents: Record<string, AgentDefinition> = {
  issues: agent({
    ...base,
    settings,
    actions: {
      search: {
        direction: 'source',
        effect: 'read',
        entry: Type.Object({
          name: Type.String(),
          ref: Type.String(),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
          filter: Type.Optional(literal('put the value into `ref`')),
        }),
        run,
      },
      add_comment: {
        direction: 'target',
        effect: 'once',
        entry: target({ ref: Type.String(), file: Type.String() }),
        run,
      },
    },
    notify: {
      effect: 'once',
      entry: Type.Object({
        action: Type.Enum(['add_comment', 'transition']),
        ref: Type.String(),
        message: Type.Optional(Type.String()),
      }),
      run,
    },
  }),
  http: agent({
    ...base,
    settings: Type.Object({}),
    source: {
      effect: 'read',
      entry: Type.Object({
        name: Type.String(),
        url: Type.String({ minLength: 1 }),
        method: Type.Optional(Type.Enum(['GET', 'POST'])),
        headers: Type.Optional(Type.Record(Type.String(), Type.String())),
        body: Type.Optional(Type.Any()),
        expect_status: Type.Optional(Type.Union([Type.Integer(), Type.Array(Type.Integer())])),
        retries: Type.Optional(Type.Integer({ minimum: 0 })),
      }),
      run,
    },
    target: {
      effect: 'once',
      entry: Type.Object(
        {
          name: Type.String(),
          url: Type.String(),
          file: Type.Optional(Type.String()),
          body: Type.Optional(Type.Any()),
        },
        {
          oneOf: [{ required: ['file'] }, { required: ['body'] }],
          'x-none': 'a request without content has `body: ""`',
        },
      ),
      run,
    },
  }),
  store: agent({
    ...base,
    settings,
    source: { effect: 'read', entry: target({ ref: Type.String() }), run },
    target: { effect: 'idempotent', entry: target({ ref: Type.String(), file: Type.String() }), run },
    actions: {
      list: { direction: 'source', effect: 'read', entry: target({ prefix: Type.String() }), run },
      delete: { direction: 'target', effect: 'idempotent', entry: target({ ref: Type.String() }), run },
    },
  }),
  wiki: agent({
    ...base,
    settings,
    actions: {
      update_page: {
        direction: 'target',
        effect: 'idempotent',
        entry: target({ ref: Type.String(), title: Type.String(), file: Type.String() }),
        run,
      },
    },
  }),
  git: agent({
    ...base,
    settings,
    actions: {
      create_pr: {
        direction: 'phase',
        effect: 'idempotent',
        entry: Type.Object({
          title: Type.Optional(Type.String()),
          draft: Type.Optional(Type.Boolean()),
          labels: Type.Optional(Type.Array(Type.String())),
          project_dir: Type.Optional(Type.String()),
        }),
        run,
      },
    },
  }),
  chat: agent({
    ...base,
    settings,
    phase: {
      effect: 'once',
      entry: Type.Object({
        channels: Type.Optional(Type.Array(Type.String())),
        message: Type.Optional(Type.String()),
        subject: Type.Optional(Type.String()),
        url: Type.Optional(Type.String()),
      }),
      run,
    },
    notify: {
      effect: 'once',
      entry: Type.Object({
        channels: Type.Optional(Type.Array(Type.String())),
        message: Type.Optional(Type.String()),
      }),
      run,
    },
  }),
  exec: agent({
    type: 'exec',
    version: '1.0.0',
    description: 'Runs commands.',
    settings: Type.Object({}),
    phase: {
      effect: 'idempotent',
      entry: Type.Object({
        commands: Type.Array(
          Type.Object({
            name: Type.String(),
            run: Type.String(),
            env: Type.Optional(Type.Record(Type.String(), Type.String())),
            effect: Type.Optional(Type.Enum(['idempotent', 'once'])),
          }),
          { minItems: 1 },
        ),
        env: Type.Optional(Type.Record(Type.String(), Type.String())),
      }),
      run,
    },
  }),
}

export const lookup: AgentLookup = {
  get: name => (Object.hasOwn(agents, name) ? agents[name] : undefined),
  names: () => Object.keys(agents),
}
