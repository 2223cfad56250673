/** The layout of protected packets, against bytes written by hand after the specification, and against an independent decoder. */

import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { chooseCipher } from '../../src/driver/cipher/cipher-choice.js';
import { IpAddress } from '../../src/packet/address.js';
import { INT_DATA_HOPS, INT_ECHO, intTrailerBytes } from '../../src/packet/int-trailer.js';
import {
  bthOffset,
  isPsp,
  isPspOfRoce,
  PSP_BYTES_MIN,
  PSP_EMPTY_BYTES,
  PSP_OVERHEAD_BYTES,
  PSP_PHASE_BIT,
  PSP_PREFIX_BYTES,
  pspIvHigh,
  pspIvLow,
  pspPhase,
  pspSpi,
  pspVersion,
  writeEmptyPsp,
  writeInnerUdp,
  writePsp,
} from '../../src/packet/psp.js';
import { BTH_BYTES, ICRC_BYTES, PARSE_OK, parseRoce, RocePacket } from '../../src/packet/roce.js';
import { TX_PAYLOAD_BYTES_MAX } from '../../src/port/datagram.js';
import { Association } from '../../src/port/secure/association.js';
import { KeySchedule } from '../../src/port/secure/key-schedule.js';
import { createPair } from '../support/pair.js';
import { termsBetween } from '../support/protected-host.js';

describe('a PSP header', () => {
  const bytes = new Uint8Array(80);
  writePsp(bytes, 4, 1, 0x1234_5678 + PSP_PHASE_BIT, 0x0000_0102, 0xf3f4_f5f6);
  writeInnerUdp(bytes, 4, 4791, 50_000, 28);

  it('has the octets of the specification', () => {
    const hex = Buffer.from(bytes.subarray(4, 28)).toString('hex');
    // Next header UDP, 8 octets behind the first 8, crypt offset of 5 words, version 1 and the bit that is 1.
    expect(hex).toBe(`11010505${'92345678'}${'00000102f3f4f5f6'}${'12b7c35000240000'}`);
  });

  it('is read as it was written', () => {
    expect(pspSpi(bytes, 4)).toBe(0x1234_5678);
    expect([pspPhase(bytes, 4), pspVersion(bytes, 4)]).toEqual([1, 1]);
    expect([pspIvHigh(bytes, 4), pspIvLow(bytes, 4)]).toEqual([0x102, 0xf3f4_f5f6]);
    expect(bthOffset(bytes, 4, 76)).toBe(PSP_PREFIX_BYTES);
  });

  it('is refused with other options, or cut', () => {
    const of = (at: number, value: number) => {
      const changed = bytes.slice();
      changed[4 + at] = value;
      return isPspOfRoce(changed, 4, 76);
    };
    expect(isPspOfRoce(bytes, 4, 76)).toBe(true);
    expect(of(0, 6)).toBe(false); // TCP
    expect(of(2, 0)).toBe(false); // everything encrypted
    expect(of(3, 0x09)).toBe(false); // AES-128-GMAC
    expect(of(3, 0x03)).toBe(false); // virtualization cookie
    expect(isPspOfRoce(bytes, 4, PSP_BYTES_MIN - 1)).toBe(false);
    writeEmptyPsp(bytes, 40, 0, 1, 0, 0);
    expect(isPspOfRoce(bytes, 40, PSP_EMPTY_BYTES)).toBe(true);
    expect(isPspOfRoce(bytes, 40, PSP_EMPTY_BYTES + 1)).toBe(false);
  });

  it('is never that of a packet that a receiver of RoCEv2 takes: TVer is 1', () => {
    const packet = new RocePacket();
    for (let opcode = 0; opcode < 256; opcode++) {
      const plain = bytes.slice(4, 4 + PSP_BYTES_MIN);
      plain[0] = opcode;
      expect(isPsp(plain, 0, plain.length)).toBe(true);
      expect(parseRoce(plain, 0, plain.length, packet)).not.toBe(PARSE_OK);
    }
  });
});

const decoder = fileURLToPath(new URL('open-psp.py', import.meta.url));
const hasPython = spawnSync('python3', ['-c', 'import cryptography']).status === 0;

describe.skipIf(!hasPython)('an independent decoder (python3 with cryptography)', () => {
  it.each([[['192.0.2.1', '192.0.2.2']], [['2001:db8::1', '2001:db8::2']]] as const)(
    'opens what two endpoints send, %o',
    async (addresses) => {
      const sealed: string[] = [];
      const plain: string[] = [];
      const pair = await createPair({
        addresses: [addresses[0], addresses[1]],
        secure: { rekey: { packets: 3 } },
        onPacket: (direction, bytes) => {
          if (direction === 'a>b') sealed.push(Buffer.from(bytes).toString('hex'));
        },
        onWireOfA: ({ bytes, offset, length, source }) => {
          if (source.text !== addresses[0]) return;
          plain.push(Buffer.from(bytes.subarray(offset, offset + length)).toString('hex'));
        },
      });
      const { a, b } = pair;
      for (const opcode of ['RDMA_WRITE', 'RDMA_READ'] as const) {
        a.qp.postSend({ opcode, sges: [a.mr.sge(0, 5000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
        pair.completions(a.cq, 1);
      }
      const [{ sendSecret }] = termsBetween(addresses[0], addresses[1]);
      const schedule = new KeySchedule(sendSecret, 16);
      const keys = Array.from({ length: 9 }, () => Buffer.from(schedule.next()).toString('hex'));
      const input = JSON.stringify({ secret: Buffer.from(sendSecret).toString('hex'), packets: sealed });
      const output = JSON.parse(execFileSync('python3', [decoder], { input }).toString());
      expect(output.keys.slice(0, 9)).toEqual(keys);
      expect(output.packets).toEqual(plain);
      expect(output.epochs.at(-1)).toBeGreaterThan(1);
      expect(sealed[0].length).toBe(plain[0].length + 2 * PSP_OVERHEAD_BYTES);
    },
  );
});

it('the longest packet, with immediate data and telemetry, has room in a slot when it is protected', () => {
  const extensions = 16 + 4; // RETH and ImmDt
  const longest = BTH_BYTES + extensions + 4096 + intTrailerBytes(INT_DATA_HOPS | INT_ECHO) + ICRC_BYTES;
  expect(longest + PSP_OVERHEAD_BYTES).toBeLessThanOrEqual(TX_PAYLOAD_BYTES_MAX);
});

describe('an association', () => {
  it('never seals two packets with one nonce', () => {
    const [terms] = termsBetween('192.0.2.1', '192.0.2.2');
    const own = new Association(terms, IpAddress.parse(terms.peer), chooseCipher().make, 0, { packets: 10 });
    const seen = new Set<string>();
    for (let n = 0; n < 100; n++) {
      own.prepare(n);
      seen.add(`${own.spi} ${own.ivHigh} ${own.ivLow}`);
      const packet = new Uint8Array(64);
      writeEmptyPsp(packet, 0, 0, own.spi, own.ivHigh, own.ivLow);
      own.seal(packet, 16, 0, packet, 0, 16);
    }
    expect(seen.size).toBe(100);
  });
});
