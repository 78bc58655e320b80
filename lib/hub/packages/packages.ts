// Published teams: immutable packages `@scope/name@version`. This module is the entry of the folder. It covers how
// packages are named, how they are found, and how one is checked before it is published.

export { type Found, PackageChecker } from './check.ts'
export { filesOf, findPackage, type PackageHead, type PackageRow, versionsOf } from './published.ts'
export { scopeSlugOf, splitReference } from './reference.ts'
