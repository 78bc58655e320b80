// The files that runs wrote, on the daemon of the run.

import type { Static } from 'typebox'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { READER_OF_RUN } from '../access.ts'
import { call } from '../call.ts'
import { listOf } from '../page.ts'
import { AnyText, Name, WrittenId } from '../parts.ts'
import { FileRecord } from '../records/run-records.ts'

const Artifact = Type.Object({ ...FileRecord.properties, phase: AnyText })
export type Artifact = Static<typeof Artifact>

export const ListArtifacts = call('/v1/artifacts/list', {
  summary: 'Files that phases of a run wrote',
  daemon: READER_OF_RUN,
  body: closed({ run_id: WrittenId, phase: Type.Optional(Name) }),
  data: listOf('artifacts', Artifact),
})
export const GetArtifact = call('/v1/artifacts/get', {
  summary: 'One file, as a download',
  daemon: READER_OF_RUN,
  query: closed({ run_id: WrittenId, path: Type.String({ minLength: 1, maxLength: 2_000 }) }),
})
