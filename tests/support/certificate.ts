// Certificates for servers of tests, as files.

import { join } from 'node:path'

/** Makes a self-signed certificate for a host, and its key. */
export function certificate(folder: string, host = 'localhost'): { cert: string; key: string } {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  make(['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`], cert, key)
  return { cert, key }
}

/** Makes the certificate of an authority, one for a host that it has signed, and the host's key, as files. */
export function signedCertificate(folder: string, host = 'localhost'): { ca: string; cert: string; key: string } {
  const [ca, caKey] = [join(folder, 'ca.pem'), join(folder, 'ca-key.pem')]
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  make(['-subj', '/CN=Authority of the test', '-addext', 'keyUsage=keyCertSign'], ca, caKey)
  const names = [
    '-subj',
    `/CN=${host}`,
    '-addext',
    `subjectAltName=DNS:${host}`,
    '-addext',
    'basicConstraints=CA:FALSE',
  ]
  make([...names, '-CA', ca, '-CAkey', caKey], cert, key)
  return { ca, cert, key }
}

function make(more: string[], cert: string, key: string): void {
  const made = Bun.spawnSync(
    ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
      .concat(more)
      .concat(['-keyout', key, '-out', cert]),
  )
  if (made.exitCode !== 0) throw new Error(`openssl made no certificate: ${made.stderr}`)
}
