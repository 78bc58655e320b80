// The exports of lib/vendors/s3: objects of an S3-compatible store.

export { objectsPage, type StoredObject } from './listing.ts'
export { bucketAt, bucketIn, storeAddresses, whyNoPlace } from './place.ts'
export { type Place, urlOf } from './request.ts'
export { download, upload } from './transfer.ts'
