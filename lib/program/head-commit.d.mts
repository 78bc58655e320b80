/** Null where `root` is not the top of a clone or worktree, or its HEAD names no commit that is kept in a file. */
export function headCommit(root: string): string | null
