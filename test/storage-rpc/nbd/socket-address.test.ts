import { expect, test } from 'vitest';
import { parseSocketAddress } from '../../../src/storage-rpc/nbd/listen-address.js';

test.each([
  ['unix:/tmp/a:b', { path: '/tmp/a:b' }],
  ['unix:x.sock', { path: 'x.sock' }],
  ['127.0.0.1:10809', { host: '127.0.0.1', port: 10809 }],
  ['localhost:0', { host: 'localhost', port: 0 }],
  ['[::1]:10809', { host: '::1', port: 10809 }],
])('%s', (text, address) => {
  expect(parseSocketAddress(text)).toEqual(address);
});

test.each(['', 'unix:', 'localhost', '::1:10809', '10809', 'host:-1'])("'%s' is no address", (text) => {
  expect(() => parseSocketAddress(text)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_MALFORMED' }));
});

test('a port beyond 65535 is out of range', () => {
  expect(() => parseSocketAddress('host:65536')).toThrow(expect.objectContaining({ code: 'ERR_ROCE_OUT_OF_RANGE' }));
});
