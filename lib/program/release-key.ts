// The public half of the key that signs releases of this cadre, the only one whose releases `upgrade` installs. The
// private half stands in no file of the repository. docs/install.md says how those who publish a cadre of their own
// replace it.

export const releaseKey = 'ed25519:2e4m7vxYHfjWvf-6Hxb_zIuL07C6iFusv6823f8AD6g'
