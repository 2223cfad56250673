/** libuv tells of sockets that it does not read: the port's wait on an event loop. */

import { pbkdf2 } from 'node:crypto';
import { setImmediate as nextRound } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { batchedUdpAvailable, openBatchedUdpPort } from '../../src/dgram-ext/index.js';
import { type LibC, libC } from '../../src/dgram-ext/libc.js';
import { LoopReadiness } from '../../src/dgram-ext/loop-readiness.js';
import { boundUdpPort, openNativeSocket } from '../../src/dgram-ext/native-socket.js';
import { socketAddressLength, writeSocketAddress } from '../../src/dgram-ext/socket-address.js';
import { nowNs } from '../../src/driver/system-clock.js';
import { IpAddress } from '../../src/packet/address.js';
import { eventually } from '../support/eventually.js';

const A = IpAddress.parse('127.53.6.1');
const B = IpAddress.parse('127.53.6.2');
const BUFFER_BYTES = 65536;

/** A socket that has a peer, and what reads and writes eight bytes of it. */
function connected(lib: LibC, own: IpAddress, peer: IpAddress, peerPort: number) {
  const fd = openNativeSocket(own, 0, BUFFER_BYTES, BUFFER_BYTES);
  const bytes = new Uint8Array(socketAddressLength(4));
  writeSocketAddress(bytes, 0, peer, peerPort);
  expect(lib.connect(fd, bytes, bytes.length)).toBe(0);
  return { fd, send: () => lib.write(fd, lib.addressOf(EIGHT), 8) };
}

/** In memory that stays. */
const EIGHT = new Uint8Array(new ArrayBuffer(64));

/** As many rounds of the event loop as a second call would need. */
async function rounds(): Promise<void> {
  for (let i = 0; i < 5; i++) await nextRound();
}

describe.skipIf(batchedUdpAvailable() !== undefined)(
  'the readiness of a socket on an event loop (needs koffi on Linux)',
  () => {
    const lib = libC() as LibC;

    it('is told until everything has been read, and then no more', async () => {
      const to = openNativeSocket(B, 0, BUFFER_BYTES, BUFFER_BYTES);
      const { fd, send } = connected(lib, A, B, boundUdpPort(to));
      const read = () => lib.read(to, lib.addressOf(EIGHT), 8);
      let told = 0;
      const readiness = new LoopReadiness(lib, to, () => told++);
      await rounds();
      expect(told).toBe(0);
      send();
      send();
      await eventually(() => told > 0);
      expect(read()).toBe(8);
      const before = told;
      await eventually(() => told > before);
      expect(read()).toBe(8);
      expect(read()).toBe(-1);
      await rounds();
      const after = told;
      await rounds();
      expect(told).toBe(after);
      send();
      readiness.close();
      await rounds();
      expect(told).toBe(after);
      lib.close(fd);
      lib.close(to);
    });

    it('goes on after an error of the socket', async () => {
      const gone = openNativeSocket(B, 0, BUFFER_BYTES, BUFFER_BYTES);
      const { fd, send } = connected(lib, A, B, boundUdpPort(gone));
      lib.close(gone);
      let told = 0;
      const readiness = new LoopReadiness(lib, fd, () => told++);
      send(); // ECONNREFUSED comes back.
      await eventually(() => told > 0);
      expect(lib.read(fd, lib.addressOf(EIGHT), 8)).toBe(-1); // Takes the error.
      readiness.rest();
      await rounds();
      const before = told;
      send();
      await eventually(() => told > before);
      readiness.close();
      lib.close(fd);
    });

    it('takes no thread of the pool, which files and cryptography need', async () => {
      const ports = Array.from({ length: 8 }, () => openBatchedUdpPort({ nowNs, address: A, udpPort: 0 }));
      await Promise.all(ports.map((port) => port.open()));
      await rounds();
      expect(await promisify(pbkdf2)('word', 'salt', 1, 8, 'sha256')).toHaveLength(8);
      await Promise.all(ports.map((port) => port.close()));
    });
  },
);
