// The modules and pages inside a compiled program, which finds no files of ours on the disk. `bun run build`
// (deploy/build.ts) replaces this file by one with that content. Everywhere else `carried` is null.

export interface Carried {
  /** The built-in agents, by the path that their files would have below `ROOT`. */
  agents: Readonly<Record<string, Load>>
  /** What agents import by name: `cadre` and its like, and the packages that cadre has. */
  modules: Readonly<Record<string, Load>>
  /** What is started as a process of its own (`ownProgram`), by its path below `ROOT`. */
  programs: Readonly<Record<string, Load>>
  dashboard: Dashboard
  hubPages: Dashboard
}

export interface Dashboard {
  /** The page. */
  html: string
  /** By the name that follows `/web/`. Names contain a hash of the content. */
  files: Readonly<Record<string, PageFile>>
}

export interface PageFile {
  text: string
  type: string
  /** Whether the text is the Base64 of the file. */
  isBase64?: boolean
}

export type Load = () => Promise<object>

export const carried = null as Carried | null
