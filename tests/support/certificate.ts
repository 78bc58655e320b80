// Makes a self-signed certificate for a host, and its key, as files.

import { join } from 'node:path'

export function certificate(folder: string, host = 'localhost'): { cert: string; key: string } {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const made = Bun.spawnSync(
    ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
      .concat(['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`])
      .concat(['-keyout', key, '-out', cert]),
  )
  if (made.exitCode !== 0) throw new Error(`openssl made no certificate: ${made.stderr}`)
  return { cert, key }
}
