/** What becomes of a ring whose reader dies. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import { type LibC, libC } from '../../src/dgram-ext/libc.js';
import { IpAddress } from '../../src/packet/address.js';
import { RingLink } from '../../src/port/shm/ring-link.js';
import { Segment } from '../../src/port/shm/segment.js';
import { RING_BYTES, RingReader } from '../../src/port/shm/shared-ring.js';

const A = IpAddress.parse('127.53.9.1');
const B = IpAddress.parse('127.53.9.2');
const PORT = 4791;
const MS = 1e6;

describe.skipIf(batchedUdpAvailable() !== undefined)('a link to a peer (needs koffi on Linux)', () => {
  /** A link whose ring process `pid` reads. */
  function readBy(pid: number) {
    const lib = libC() as LibC;
    const link = new RingLink({ lib, address: A, udpPort: PORT }, B, PORT, 7);
    const offer = link.offer(0)!;
    const segment = Segment.open(lib, offer.pid, offer.fd, RING_BYTES)!;
    const ends = { writer: A, writerPort: PORT, reader: B, readerPort: PORT };
    expect(RingReader.open(segment.memory, offer.nonce, pid, ends)).toBeDefined();
    link.openIfRead(0);
    return {
      link,
      [Symbol.dispose]: () => {
        link.close();
        segment.close();
      },
    };
  }

  it('is over for everybody who asks once its reader has died, and not while it lives', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()']);
    using dying = readBy(child.pid!);
    using living = readBy(process.pid);
    expect(dying.link.isOver(60 * MS)).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(dying.link.isOver(120 * MS)).toBe(true);
    expect(dying.link.isOver(121 * MS)).toBe(true); // Without another look at the process: those are far between.
    expect(living.link.isOver(120 * MS)).toBe(false);
  });
});
