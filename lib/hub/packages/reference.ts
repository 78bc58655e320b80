// How published teams are named: `@scope/name`, optionally followed by `@` and a version or range.

export function splitReference(reference: string): { name: string; range: string | null } {
  const at = reference.indexOf('@', 1)
  return at === -1 ? { name: reference, range: null } : { name: reference.slice(0, at), range: reference.slice(at + 1) }
}

export const scopeSlugOf = (name: string): string => name.slice(1, name.indexOf('/'))
