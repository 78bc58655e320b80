// The errors of a connection that say that the certificate of the other side is not trusted.

const CERTIFICATE = /CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO_(GET|VERIFY)|HOSTNAME/

/** `code`: that of an error of `fetch`. */
export const isOfCertificate = (code: string): boolean => CERTIFICATE.test(code)

/** What makes a program trust an authority of its own. */
export const TRUSTING = 'NODE_EXTRA_CA_CERTS=/path/to/ca.pem'
