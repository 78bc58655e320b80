// Published teams: immutable packages `@scope/name@version`. This is the door of the room: how they are named, how they
// are found, and how one is checked before it is published.

export { type Found, PackageChecker } from './check.ts'
export { filesOf, findPackage, type PackageRow, versionsOf } from './published.ts'
export { scopeSlugOf, splitReference } from './reference.ts'
