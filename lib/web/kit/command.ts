// How the caller starts cadre, for hints that can be pasted: `bun daemon.ts`, or `cadre`. The bundler puts it in (web.ts).

declare const CADRE_COMMAND: string

export const command = CADRE_COMMAND
