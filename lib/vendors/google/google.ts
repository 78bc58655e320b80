// The exports of lib/vendors/google: requests to Google Drive with an account.

export { whyNoAccount } from './access-token.ts'
export { driveAddresses, driveJson, driveRequest } from './drive.ts'
export { driveUpload } from './drive-upload.ts'
