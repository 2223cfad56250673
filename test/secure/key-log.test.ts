/** Secrets in a key log, and recorded packets that they open. */

import { describe, expect, it } from 'vitest';
import { isEmptyPsp, isPspOfRoce, PSP_CLEAR_BYTES, PSP_OVERHEAD_BYTES } from '../../src/packet/psp.js';
import { keyLogLines, parseKeyLog } from '../../src/port/secure/key-log.js';
import { KeyRing, RECORD_FORGED, RECORD_OPENED, RECORD_WITHOUT_KEY } from '../../src/port/secure/key-ring.js';
import { createPair } from '../support/pair.js';
import { termsBetween } from '../support/protected-host.js';

const [TERMS] = termsBetween('192.0.2.1', '192.0.2.2');
const LOG = keyLogLines(TERMS);

/** All packets of WRITEs, as recorded; keys change every four packets. */
async function recorded(faults?: string): Promise<Uint8Array[]> {
  const packets: Uint8Array[] = [];
  const pair = await createPair({
    secure: { rekey: { packets: 4 } },
    ...(faults !== undefined && { faults, seed: 1 }),
    onPacket: (_, bytes) => packets.push(bytes.slice()),
  });
  const { a, b } = pair;
  for (let i = 0; i < 20; i++) {
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 3000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
  }
  pair.completions(a.cq, 20);
  return packets.filter((packet) => isPspOfRoce(packet, 0, packet.length) && !isEmptyPsp(packet, 0, packet.length));
}

function open(ring: KeyRing, packet: Uint8Array): number {
  return ring.open(packet, PSP_CLEAR_BYTES, new Uint8Array(packet.length));
}

const ring = () => new KeyRing(parseKeyLog(LOG));

describe('lines', () => {
  it('one for each direction, read as they were written', () => {
    expect(LOG).toMatch(/^(ROCEV2_PSP_SECRET [0-9a-f]{8} [0-9a-f]{64}\n){2}$/);
    expect(parseKeyLog(LOG)).toEqual([
      { spi: TERMS.remoteSpi, secret: TERMS.sendSecret },
      { spi: TERMS.spi, secret: TERMS.receiveSecret },
    ]);
  });

  it('those of TLS and comments are left out', () => {
    expect(parseKeyLog(`# a log\nEXPORTER_SECRET 01 02\r\n\n${LOG}`)).toHaveLength(2);
  });

  it.each(['ROCEV2_PSP_SECRET', 'ROCEV2_PSP_SECRET 00000a00 0102', `ROCEV2_PSP_SECRET xyz ${'0'.repeat(64)}`])(
    '"%s" is refused with its number',
    (line) => expect(() => parseKeyLog(`# first\n${line}\n`)).toThrow(/line 2 of the key log is not a secret/),
  );
});

describe('recorded packets', () => {
  it('are opened, over many changes of keys', async () => {
    const packets = await recorded();
    const keys = ring();
    expect(packets.length).toBeGreaterThan(60);
    expect(new Set(packets.map((packet) => open(keys, packet)))).toEqual(new Set([RECORD_OPENED]));
  });

  it('also where packets are lost and come twice and late', async () => {
    const packets = await recorded('random=0.05;reorder=0.1,3;duplicate=0.1');
    const keys = ring();
    expect(packets.every((packet) => open(keys, packet) === RECORD_OPENED)).toBe(true);
  });

  it('also from the middle of a connection, and backwards for the last key', async () => {
    const packets = await recorded();
    const keys = ring();
    const rest = packets.slice(packets.length / 2);
    expect(rest.every((packet) => open(keys, packet) === RECORD_OPENED)).toBe(true);
    expect(open(keys, packets[0])).toBe(RECORD_FORGED); // Many keys ago.
  });

  it('hold the same text as what the sender sealed', async () => {
    const [packet] = await recorded();
    const text = new Uint8Array(packet.length - PSP_OVERHEAD_BYTES - 12);
    expect(ring().open(packet, PSP_CLEAR_BYTES, text)).toBe(RECORD_OPENED);
    expect(new DataView(text.buffer).getUint32(12)).toBe(3000); // The length in the RETH.
  });

  it('are not opened by other secrets, nor when one bit is changed, nor for an unknown SPI', async () => {
    const [packet] = await recorded();
    const others = parseKeyLog(keyLogLines({ ...TERMS, sendSecret: new Uint8Array(32).fill(9) }));
    expect(open(new KeyRing(others), packet)).toBe(RECORD_FORGED);
    expect(open(new KeyRing([...others, ...parseKeyLog(LOG)]), packet)).toBe(RECORD_OPENED); // Two connections, one SPI.
    for (const place of [1, 8, 30, 50, packet.length - 1]) {
      const changed = packet.slice();
      changed[place] ^= 1;
      if (isPspOfRoce(changed, 0, changed.length)) expect(open(ring(), changed), String(place)).toBe(RECORD_FORGED);
    }
    const elsewhere = packet.slice();
    elsewhere[7] ^= 1;
    expect(open(ring(), elsewhere)).toBe(RECORD_WITHOUT_KEY);
  });
});
