// The files beside team.yml that its phases name. A run looks for them in its workspace, so people are told before it begins.

import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { isFilePath } from '../../agent/entry.ts'
import { whereLooked } from '../../agent/files/file-rule.ts'
import { isObject, type Json } from '../../json.ts'
import { type Bundle, handledCalls, teamsOf } from '../../team/team.ts'
import type { OwnFile } from '../../wire/calls/teams.ts'
import type { Stock } from './start-run.ts'

/** Those that are named in constant texts, and exist. A package has no folder of its own. */
export function ownFiles({ catalogue }: Pick<Stock, 'catalogue'>, bundle: Bundle): OwnFile[] {
  return teamsOf(bundle).flatMap(([key, { phases }]) => {
    const folder = bundle.folder(key)
    if (folder === null) return []
    const isBelow = folder !== bundle.folder(bundle.root)
    return phases.flatMap(phase => {
      if (phase.type !== 'standard') return []
      const { name, place } = phase
      const named = handledCalls(catalogue, phase).flatMap(({ handler, entry }) =>
        pathsIn(handler.entry.properties, entry),
      )
      const own = new Set(named.filter(path => isOfWorkspace(path) && existsSync(join(folder, path))))
      return [...own].map(path => ({ place, phase: name, path, folder, ...(isBelow && { sub_team: true }) }))
    })
  })
}

const isOfWorkspace = (path: string): boolean => !path.includes('{{') && !path.startsWith('files/') && !isAbsolute(path)

/** The texts of the fields that are files, or lists of files. */
function pathsIn(fields: Record<string, object>, entry: Json): string[] {
  if (!isObject(entry)) return []
  return Object.entries(fields).flatMap(([name, schema]) => {
    const isFile = isFilePath(schema) || ('items' in schema && isFilePath(schema.items as object))
    const given = isFile ? [entry[name]].flat() : []
    return given.filter(each => typeof each === 'string')
  })
}

/** What to do about those that are not in the workspace, in the words of the phase that would fail. */
export function misplaced(files: readonly OwnFile[], workspace: string): string[] {
  return files
    .filter(({ path }) => !existsSync(join(workspace, path)))
    .map(({ place, phase, path, folder, sub_team = false }) => {
      const teamFolder = { path: folder, isTop: !sub_team }
      return `${place}: phase ${phase} names ${path}, which does not exist: ${whereLooked(path, { workspace, teamFolder })}`
    })
}
