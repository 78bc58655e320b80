// Calls of the agent for databases, as a run makes them.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import database from '../../agents/database.ts'
import type { AgentContext, AgentResult } from '../../lib/agent/agent-context.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { TestDatabase } from '../vendors/databases.ts'
import { phaseFolder, testContext } from './context.ts'

type Reached = Pick<TestDatabase, 'settings'>

const contextOf = ({ settings }: Reached) =>
  testContext({ agent: 'database', settings, network: { allow: [], literalOrigins: [] } })

export async function query(at: Reached, sql: string, more: JsonObject = {}) {
  const t = contextOf(at)
  const { data } = await database.actions!.query!.run(
    { name: 'rows.json', sql, ...more },
    t.context as AgentContext<never>,
  )
  return { data: data as JsonObject, items: itemsIn(readFileSync(join(phaseFolder(t), 'rows.json'), 'utf8')) }
}

const itemsIn = (text: string) => (JSON.parse(text) as { items: JsonObject[] }).items

export function execute(at: Reached, sql: string, more: JsonObject = {}): Promise<AgentResult> {
  return database.actions!.execute!.run({ name: 'it', sql, ...more }, contextOf(at).context as AgentContext<never>)
}

export async function doctorOf(at: Reached): Promise<string> {
  return (await database.doctor!(contextOf(at).context as AgentContext<never>)).text
}
