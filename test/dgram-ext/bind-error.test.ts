import { expect, it } from 'vitest';
import { bindError } from '../../src/dgram-ext/bind-error.js';

it("suspects the kernel's RoCE where the port is RoCE's", () => {
  expect(bindError('EADDRINUSE', '127.0.0.1', 4791).message).toMatch(/127\.0\.0\.1:4791: EADDRINUSE \(.*rdma_rxe/);
  expect(bindError('EADDRINUSE', '127.0.0.1', 5001).message).toMatch(/another program has the port/);
  expect(bindError('EADDRINUSE', '127.0.0.1', 5001).message).not.toMatch(/rdma_rxe/);
});
