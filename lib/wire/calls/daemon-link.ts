// What a daemon calls with its realm token: enrolment, heartbeat, the long poll for jobs, its answers, and the report of
// what its runs did. Bodies may contain unknown properties, so that either side may be newer.

import type { Static } from 'typebox'
import { nullable, standard } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call, ErrorReply, MIB } from '../call.ts'
import { Title, Version } from '../names.ts'
import type { OfferedAgent } from '../needs.ts'
import { AnyText, Text, Time, Uuid } from '../parts.ts'
import { AccessList, BULLETIN, MEMORY, ProtocolVersion } from '../protocol.ts'
import type { Standing } from '../standing.ts'

/**
 * What the hub chooses a daemon by. In a heartbeat it is present when it has changed. Each name is held to its grammar
 * by itself (`offerOf`), so that one which does not fit keeps no daemon away.
 */
const OFFER = {
  agents: Type.Optional(Type.Unsafe<OfferedAgent[]>(Type.Array(Type.Unknown(), { maxItems: 1_000 }))),
  labels: Type.Optional(Type.Unsafe<Record<string, string>>(Type.Record(Type.String(), Type.Unknown()))),
  workspaces: Type.Optional(Type.Unsafe<string[]>(Type.Array(Type.Unknown(), { maxItems: 1_000 }))),
  sandbox: Type.Optional(
    Type.String({
      pattern: '^[a-z][a-z0-9_-]{0,39}$',
      'x-expected': 'a word such as bubblewrap',
      description: 'Where the commands of dispatched runs run: none, bubblewrap or container.',
    }),
  ),
  kinds: Type.Optional(
    Type.Unsafe<string[]>(
      Type.Array(Type.Unknown(), {
        maxItems: 100,
        description: 'The kinds of jobs that the daemon takes. Only one that lists `tell` gets jobs of that kind.',
      }),
    ),
  ),
  accounts: Type.Optional(
    Type.Unsafe<string[]>(
      Type.Array(Type.Unknown(), {
        maxItems: 1_000,
        description: 'Where the daemon can tell people something: `agent:channel`.',
      }),
    ),
  ),
  environments: Type.Optional(
    Type.Unsafe<string[]>(
      Type.Array(Type.Unknown(), {
        maxItems: 1_000,
        description: 'The environments of its settings, which runs can have there.',
      }),
    ),
  ),
  examined: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The `examine` of a reply after which its doctors were asked last.',
    }),
  ),
}

/**
 * Which start of its home calls. Two homes of one daemon id differ in it, as those of a machine and of its snapshot do:
 * the hub serves the one that was started more often, and refuses the other.
 */
const START = {
  starts: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  start: Type.Optional(Type.Unsafe<string>({ ...Uuid, description: 'The id of this start of the home.' })),
}
export interface Start {
  starts?: number
  start?: string
}

export const Register = call('/v1/daemons/register', {
  summary: 'Enrol a daemon in a realm',
  hub: { realm: true },
  body: standard(
    Type.Object({
      daemon_id: Type.Optional(Uuid),
      realm_id: Type.Optional(Uuid),
      name: Title(200),
      hostname: Type.Optional(Title(255)),
      version: Type.Optional(Version),
      commit: Type.Optional(
        Type.String({ pattern: '^[0-9a-f]{7,64}$', description: 'The commit of git that the daemon is made of.' }),
      ),
      protocol: ProtocolVersion,
      capacity: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
      ...START,
      ...OFFER,
      ...MEMORY,
      teams_version: Type.Optional(Type.Unknown()),
    }),
  ),
  data: Type.Object({ daemon_id: AnyText, realm_id: AnyText, ...BULLETIN, acl: AccessList }),
})

export const Heartbeat = call('/v1/daemons/heartbeat', {
  summary: 'Report that a daemon is alive',
  hub: { realm: true },
  body: standard(
    Type.Object({
      daemon_id: Uuid,
      running: Type.Optional(Type.Array(Text(100), { maxItems: 10_000 })),
      clock: Type.Optional(Type.Number()),
      stuck: Type.Optional(Type.Boolean()),
      // Each part is held to its form by itself (`readStanding`).
      standing: Type.Optional(
        Type.Unsafe<Standing>(Type.Unknown({ description: 'How the daemon stands. Older daemons do not say.' })),
      ),
      ...START,
      ...OFFER,
      ...MEMORY,
      protocol: ProtocolVersion,
      teams_version: Type.Optional(Type.Unknown()),
    }),
  ),
  data: Type.Object({ status: Type.Literal('online'), server_time: Time, next_ms: Type.Integer(), ...BULLETIN }),
})

/** The maximum number of slots that a poll asks for. A daemon with more polls again. */
export const MOST_SLOTS = 1_000

export const Poll = call('/v1/daemons/poll', {
  summary: 'Wait for jobs',
  hub: { realm: true },
  body: standard(
    Type.Object({
      daemon_id: Uuid,
      slots: Type.Optional(Type.Integer({ minimum: 0, maximum: MOST_SLOTS })),
      wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 30_000 })),
      full_disk: Type.Optional(
        Type.Boolean({ description: 'Whether the daemon takes no runs because its disk is full.' }),
      ),
      ...START,
      ...MEMORY,
      protocol: ProtocolVersion,
    }),
  ),
  /** Each job is checked against its own form (`AnyLeasedJob`). */
  data: Type.Object({ jobs: Type.Array(Type.Unknown()), ...MEMORY }),
})

const Answer = Type.Enum(['accepted', 'done', 'failed'])
export type Answer = Static<typeof Answer>

/** What became of a job. */
export const OUTCOME = {
  job_id: Text(100),
  lease_id: Text(100),
  status: Answer,
  error: Type.Optional(Type.String({ maxLength: 100_000 })),
}

/** The maximum number of answers that a call takes besides the first. */
export const MOST_OTHERS = 100

/**
 * Answers about one job, and in `others` about more of them. The reply to the first is that of the call. Each of the
 * others has its own, in the same order; an answer without a reply has to be repeated. Older hubs reply only to the first.
 */
export const Ack = call('/v1/daemons/ack', {
  summary: 'Report what became of a job',
  hub: { realm: true },
  body: standard(
    Type.Object({
      daemon_id: Uuid,
      ...OUTCOME,
      others: Type.Optional(
        Type.Array(Type.Object(OUTCOME), { maxItems: MOST_OTHERS, description: 'The same about more jobs.' }),
      ),
      ...MEMORY,
      protocol: ProtocolVersion,
    }),
  ),
  data: Type.Object({
    id: AnyText,
    job_id: AnyText,
    status: Answer,
    others: Type.Optional(
      Type.Array(
        Type.Object({
          job_id: AnyText,
          status: nullable(Answer),
          error: nullable(Type.Pick(ErrorReply, ['code', 'message'])),
        }),
        { description: 'What became of the other answers, in their order.' },
      ),
    ),
    ...MEMORY,
  }),
})

export const Deregister = call('/v1/daemons/deregister', {
  summary: 'Leave the realm',
  hub: { realm: true },
  body: standard(Type.Object({ daemon_id: Uuid, protocol: ProtocolVersion })),
  data: Type.Object({ id: AnyText, daemon_id: AnyText }),
})

/**
 * Each change is checked against its own form (changes.ts), so that one that does not fit does not delay the others.
 */
export const Sync = call('/v1/runs/sync', {
  summary: 'Report what the runs of a daemon did',
  hub: { realm: true },
  body: standard(
    Type.Object({
      daemon_id: Uuid,
      epoch: Uuid,
      from_seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
      changes: Type.Array(Type.Unknown(), { maxItems: 10_000 }),
      reported: Type.Optional(
        Type.String({ maxLength: 100, description: 'The `recall` to which the daemon has sent everything by now.' }),
      ),
      ...MEMORY,
      protocol: ProtocolVersion,
    }),
  ),
  data: Type.Object({
    acked_seq: Type.Integer(),
    cut_lines: Type.Optional(
      Type.Integer({
        description: 'How many log lines were left out, because the realm has used up its quota of log bytes.',
      }),
    ),
    rejected: Type.Array(Type.Object({ seq: Type.Integer(), code: AnyText })),
    ...MEMORY,
  }),
  limit: 4 * MIB,
})
