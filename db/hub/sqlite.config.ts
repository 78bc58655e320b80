import { defineConfig } from 'drizzle-kit'

export default defineConfig({ dialect: 'sqlite', schema: './db/hub/sqlite.ts', out: './db/hub/migrations/sqlite' })
