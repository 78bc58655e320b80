// The records of the wire, under the name that the routes import.

export * from '../wire/hub-records.ts'
export { LeasedJob } from '../wire/jobs.ts'
export { Download, Package } from '../wire/packages.ts'
export { listOf } from '../wire/page.ts'
export { Time } from '../wire/parts.ts'
export { AccessList, BULLETIN } from '../wire/protocol.ts'
