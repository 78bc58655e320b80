// The plugin of the daemon's routes: it adds the option with which a route declares who may call it.

import { Elysia } from 'elysia'
import { admission } from '../../http/admission.ts'
import { httpKit } from '../../http/kit.ts'
import type { DaemonAccess } from '../../wire/access.ts'
import type { AccessOf } from './access.ts'

export type DaemonKit = ReturnType<typeof daemonKit>

export const daemonKit = (accessOf: AccessOf) =>
  new Elysia({ name: 'daemon' }).use(httpKit()).macro({ access: (rule: DaemonAccess) => admission(accessOf(rule)) })
