/** Captures of our own endpoints on real sockets keep every rule, and nothing is left in doubt. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, listen } from '../../../../src/cm/listen-connect.js';
import { CaptureReader } from '../../../../src/port/capture/capture-reader.js';
import { openDevice } from '../../../../src/verbs/open-device.js';
import { captureTraffic } from '../../../../test/e2e/captured-traffic.js';
import { audited, broken } from './golden.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-own-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const audit = (path: string) => audited(new CaptureReader(readFileSync(path)));

describe('a capture of a frame port: RDMA CM, one of everything, a refused WRITE at the end', () => {
  it.each([
    ['IPv4', '10.9.3.1', '10.9.3.2'],
    ['IPv6', 'fd09:3::1', 'fd09:3::2'],
  ])('over %s', async (_family, here, there) => {
    const path = join(folder, `${here.replaceAll(':', '-')}.pcapng`);
    await captureTraffic(path, [here, there]);
    const report = audit(path);
    expect(report.findings).toEqual([]);
    expect(report).toMatchObject({ connections: 1, unmatchedAnswers: 0 });
    const seen = report.rules.filter(({ verdict }) => verdict === 'pass').map(({ rule }) => rule);
    expect(seen).toEqual(expect.arrayContaining([11, 23, 29, 33, 36, 40, 61, 62, 66, 91]));
  });

  it('with loss, duplicates and reordering on the wire', async () => {
    const path = join(folder, 'faults.pcapng');
    await captureTraffic(
      path,
      ['10.9.3.1', '10.9.3.2'],
      'a>b:rpsn=3:once;b>a:rpsn=1:once;duplicate=0.05;reorder=0.05,2',
    );
    expect(broken(audit(path))).toEqual([]);
  });
});

describe('a capture of a UDP port', () => {
  it.each(['dgram', 'mmsg'] as const)('through %s', async (io) => {
    const path = join(folder, `${io}.pcapng`);
    const server = await openDevice({ address: '127.0.3.41', io: 'auto' });
    const client = await openDevice({ address: '127.0.3.42', io: io === 'mmsg' ? 'auto' : 'dgram', pcap: path });
    const listener = await listen(server, { port: 0, region: new Uint8Array(65_536) });
    const [peer, connection] = await Promise.all([
      listener.accept(),
      connect(client, { host: '127.0.3.41', port: listener.port }),
    ]);
    for (let i = 0; i < 5; i++) {
      const received = peer.receive();
      await connection.send(new Uint8Array(30_000 + i));
      expect((await received).data).toHaveLength(30_000 + i);
      await connection.write(new Uint8Array(20_000), 100 + i);
      expect(await connection.read(9_000 + i, 50)).toHaveLength(9_000 + i);
      await connection.fetchAdd(0, 1n);
    }
    await connection.close();
    await peer.close();
    await listener.close();
    await client.close();
    await server.close();
    const report = audit(path);
    expect(report.findings).toEqual([]);
    expect(report.packets.unsound).toBe(0);
  });
});
