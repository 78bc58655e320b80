// `GET /health`, without credential.

import { Elysia } from 'elysia'
import { Type } from '../type.ts'
import { httpKit } from './kit.ts'

const Health = Type.Object({ status: Type.Literal('ok') }, { additionalProperties: true })

export const health = (report: () => Record<string, unknown>) =>
  new Elysia({ name: 'health' }).use(httpKit()).get('/health', () => ({ status: 'ok', ...report() }), {
    open: true,
    data: Health,
    detail: { summary: 'Liveness' },
  })
