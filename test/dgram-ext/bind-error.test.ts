import { expect, it } from 'vitest';
import { bindError } from '../../src/dgram-ext/bind-error.js';

it("suspects the kernel's RoCE where the port is RoCE's", () => {
  expect(bindError('EADDRINUSE', '127.0.0.1', 4791).message).toMatch(/127\.0\.0\.1:4791: EADDRINUSE \(.*rdma_rxe/);
  expect(bindError('EADDRINUSE', '127.0.0.1', 5001).message).toMatch(/another program has the port/);
  expect(bindError('EADDRINUSE', '127.0.0.1', 5001).message).not.toMatch(/rdma_rxe/);
});

it('names the command that gives the loopback interface another address', () => {
  expect(bindError('EADDRNOTAVAIL', '127.0.0.2', 4791).message).toContain('`ifconfig lo0 alias 127.0.0.2` (macOS)');
  expect(bindError('EADDRNOTAVAIL', '10.0.0.2', 4791).message).toContain('`ip address` lists the ones there are');
});
