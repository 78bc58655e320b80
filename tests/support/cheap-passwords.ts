// Loaded into a hub before its program: to hash a password then costs next to nothing, instead of a third of a second.

const { hash } = Bun.password

Bun.password.hash = (password, options) =>
  hash(password, typeof options === 'object' && 'memoryCost' in options ? { ...options, ...LOWEST_COST } : options)

const LOWEST_COST = { memoryCost: 8, timeCost: 1 }
