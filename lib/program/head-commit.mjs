// The commit of HEAD in a clone, from the files of git: a process of git would take longer than most commands. Plain
// JavaScript, because npm reads it with Node while it packs (deploy/stamp.mjs).

import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

const HASH = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
/** A symbolic reference may name another one. */
const MOST_STEPS = 5

/**
 * Null where `root` is not the top of a clone or worktree, or its HEAD names no commit that is kept in a file.
 * @param {string} root
 * @returns {string | null}
 */
export function headCommit(root) {
  try {
    const folder = gitFolder(root)
    // The references of a worktree are those of its repository, except HEAD.
    const common = resolve(folder, textOf(join(folder, 'commondir')) ?? '.')
    let name = 'HEAD'
    for (let step = 0; step < MOST_STEPS; step++) {
      const text = textOf(join(folder, name)) ?? textOf(join(common, name)) ?? packed(common, name)
      if (text === null) return null
      if (HASH.test(text)) return text
      const [, next] = /^ref: (refs\/\S+)$/.exec(text) ?? []
      if (next === undefined || next.includes('..')) return null
      name = next
    }
    return null
  } catch {
    return null
  }
}

/** A worktree and a submodule have a file `.git` that names the folder. */
function gitFolder(root) {
  const at = join(root, '.git')
  if (statSync(at).isDirectory()) return at
  const [, folder] = /^gitdir: (.+)$/.exec(textOf(at) ?? '') ?? []
  return resolve(root, folder)
}

function packed(common, name) {
  const lines = textOf(join(common, 'packed-refs'))?.split('\n') ?? []
  return lines.find(line => line.slice(line.indexOf(' ') + 1) === name)?.split(' ', 1)[0] ?? null
}

function textOf(file) {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return null
  }
}
