import { expect, test } from 'bun:test'
import {
  isAddress,
  isAllowEntry,
  isAllowed,
  isLoopback,
  isLoopbackAddress,
  isMetadataName,
  judge,
} from '../../lib/agent/net/address.ts'

const PUBLIC = `
  1.1.1.1 8.8.8.8 93.184.215.14 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
  169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255
  2606:4700::1111 2001:4860:4860::8888 2a00:1450:4001::200e ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1`

const PRIVATE = `
  0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 169.254.0.1
  169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0
  198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
  :: ::1 fc00::1 fd12:3456::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 ff0e::1 100::1 2001:db8::1 3fff::1 2001::1
  2001:10::1 2001:20::1 64:ff9b:1::a00:1 4000::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:0:127.0.0.1 ::127.0.0.1
  64:ff9b::7f00:1 64:ff9b::a00:1 2002:7f00:1::1 2002:c0a8:101::1 2002:a00:1::`

const METADATA = `
  169.254.169.254 169.254.170.2 169.254.170.23 169.254.0.23 168.63.129.16 192.0.0.192 100.100.100.200 fd00:ec2::254
  fd00:ec2::23 fd20:ce::254 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::a9fe:a9fe 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1
  ::ffff:0:169.254.169.254 fd00:0ec2:0:0:0:0:0:254`

const list = (text: string) => text.trim().split(/\s+/)

test.each(list(PUBLIC))('%s is public', address => {
  expect(judge(address)).toBe('public')
})

test.each(list(PRIVATE))('%s is not', address => {
  expect(judge(address)).toBe('private')
})

test.each(list(METADATA))('%s is metadata, and nothing allows it', address => {
  expect(judge(address)).toBe('metadata')
  expect(isAllowed(address, address, ['0.0.0.0/0', '::/0', address])).toBe(false)
})

test('what is no address is not public', () => {
  for (const text of ['', 'localhost', '1.2.3', '1.2.3.4.5', '0x7f.0.0.1', '2130706433', ':::', 'fe80::1::2']) {
    expect(judge(text)).toBe('private')
    expect(isAddress(text)).toBe(false)
  }
})

test("a URL's parser gives every spelling of an address one form", () => {
  for (const host of [
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '127.0.0.1.',
  ]) {
    const { hostname } = new URL(`http://${host}/`)
    expect(isAddress(hostname)).toBe(true)
    expect(judge(hostname)).toBe('private')
  }
})

test.each(['127.0.0.1', '127.255.0.9', '::1', '[::1]', '::ffff:127.0.0.1', '[::ffff:7f00:1]'])(
  '%s is this machine',
  address => {
    expect([isLoopbackAddress(address), isLoopback(address)]).toEqual([true, true])
  },
)

test.each(['localhost', 'LOCALHOST.', 'app.localhost'])('%s is a name of this machine, and no address', name => {
  expect([isLoopbackAddress(name), isLoopback(name)]).toEqual([false, true])
})

// A gateway of NAT64 or 6to4 is another machine, whatever address is inside.
test.each([
  '',
  '10.0.0.1',
  '128.0.0.1',
  '::',
  '::2',
  '::ffff:10.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::1',
  '127.0.0.1.example',
  'localhost.example',
])('%p is not this machine', host => {
  expect([isLoopbackAddress(host), isLoopback(host)]).toEqual([false, false])
})

test('metadata services by name, however written', () => {
  for (const name of ['metadata.google.internal', 'METADATA.google.internal.', 'metadata', 'instance-data']) {
    expect(isMetadataName(name)).toBe(true)
    expect(isAllowed(name, '10.0.0.1', [name])).toBe(false)
  }
  expect(isMetadataName('metadata.example.com')).toBe(false)
})

test('network.allow: CIDRs, addresses and names, the address in a wrapping too', () => {
  expect(isAllowed('wiki.corp', '10.1.2.3', ['10.0.0.0/8'])).toBe(true)
  expect(isAllowed('wiki.corp', '10.1.2.3', ['10.1.2.3'])).toBe(true)
  expect(isAllowed('wiki.corp', '10.1.2.3', ['Wiki.Corp.'])).toBe(true)
  expect(isAllowed('wiki.corp', '::ffff:10.1.2.3', ['10.0.0.0/8'])).toBe(true)
  expect(isAllowed('wiki.corp', 'fd12::1', ['fd00::/8'])).toBe(true)
  for (const entry of ['10.2.0.0/16', 'corp', 'other.corp', 'fd00::/8', '10', '', '*']) {
    expect(isAllowed('wiki.corp', '10.1.2.3', [entry])).toBe(false)
  }
})

test('entries of network.allow are checked when they are set', () => {
  for (const entry of ['10.0.0.0/8', 'fd00::/8', '10.1.2.3', 'wiki.corp', 'localhost', 'db1', '3com.example'])
    expect(isAllowEntry(entry)).toBe(true)
  for (const entry of ['', '10.0.0.0/33', '999.1.1.1', '10.1.2', 'http://wiki.corp', 'a b', '-x', '*.corp'])
    expect(isAllowEntry(entry)).toBe(false)
})
