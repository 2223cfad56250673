/**
 * What attackers on the path do to a connection whose packets are protected, in virtual time. Each attack has its twin: without protection, it succeeds.
 */

import { describe, expect, it } from 'vitest';
import { IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { OPCODES } from '../../src/packet/opcode.js';
import { PSP_PREFIX_BYTES } from '../../src/packet/psp.js';
import { emitRoce, type RoceFields } from '../../src/packet/roce.js';
import type { RxDatagram } from '../../src/port/datagram.js';
import { createPair, type Pair, type PairOptions, type Player } from '../support/pair.js';
import { associate } from '../support/protected-host.js';

const opcodeOf = (name: string) =>
  OPCODES.findIndex((info) => info !== undefined && `${info.transport} ${info.name}` === name);
const PAYLOAD = 64;

/** A pair, and an attacker who sees every packet towards b and can send to b in the name of a. */
class Wire {
  readonly pair: Pair;
  /** Towards b, as they came; the last few. */
  readonly seen: RxDatagram[] = [];
  /** What becomes of a packet towards b; default: it passes. */
  onPacket: (datagram: RxDatagram) => RxDatagram | undefined = (datagram) => datagram;
  readonly #toB: (datagram: RxDatagram) => void;

  private constructor(pair: Pair) {
    this.pair = pair;
    const { host } = pair.b;
    this.#toB = host.receive.bind(host);
    host.receive = (datagram) => {
      this.seen.push({ ...datagram, bytes: datagram.bytes.slice() });
      const passed = this.onPacket(datagram);
      if (passed !== undefined) this.#toB(passed);
    };
  }

  static async between(options: PairOptions): Promise<Wire> {
    return new Wire(await createPair(options));
  }

  /** To b. */
  inject(datagram: RxDatagram): void {
    this.#toB({ ...datagram, bytes: datagram.bytes.slice() });
  }

  /** A packet to b as a would send it, or to a as b would, but not protected: the attacker knows everything that can be seen. */
  forge(
    opcode: string,
    fields: Partial<RoceFields>,
    payload = new Uint8Array(0),
    to: Player = this.pair.b,
  ): RxDatagram {
    const { a, b } = this.pair;
    const from = to === b ? a : b;
    const packet = emitRoce({ opcode: opcodeOf(opcode), destQpn: to.qp.qpn, ...fields }, payload);
    const bytes = new Uint8Array(packet.length + 4);
    bytes.set(packet);
    const sourcePort = this.seen.at(-1)!.sourcePort;
    const [source, destination] = [from.host.address, to.host.address];
    sealIcrc(new IcrcFlow(source, destination, sourcePort, 4791), bytes, 0, bytes.length, 0, undefined);
    return {
      bytes,
      offset: 0,
      length: bytes.length,
      source,
      sourcePort,
      destination,
      destinationPort: 4791,
      ecn: 0,
      dscp: 0,
      ipId: 0,
    };
  }

  /** A WRITE of `fill` into b, which completes on a. */
  write(fill: number, bytes = PAYLOAD): string {
    const { a, b } = this.pair;
    a.mr.bytes.fill(fill, 0, bytes);
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, bytes)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    return this.pair.completions(a.cq, 1)[0].statusName;
  }

  get memory(): number[] {
    return [...this.pair.b.mr.bytes.subarray(0, 4)];
  }

  get counters() {
    return this.pair.b.device.counters();
  }
}

const secured = (options: PairOptions = {}) => Wire.between({ secure: {}, ...options });
const plain = (options: PairOptions = {}) => Wire.between(options);

/** The WRITE that the attacker would have executed next. */
function forgedWrite(wire: Wire, psnAhead: number): RxDatagram {
  const { a, b } = wire.pair;
  const va = { vaHigh: Number(b.mr.addr >> 32n), vaLow: Number(b.mr.addr & 0xffff_ffffn) };
  const fields = { psn: (a.startPsn + psnAhead) & 0xffffff, rkey: b.mr.rkey, dmaLength: PAYLOAD, ...va };
  return wire.forge('RC RDMA_WRITE_ONLY', fields, new Uint8Array(PAYLOAD).fill(0xee));
}

describe('injection: a packet that is right in every field', () => {
  it('is dropped and counted', async () => {
    const wire = await secured();
    expect(wire.write(1)).toBe('SUCCESS');
    wire.inject(forgedWrite(wire, 1));
    expect(wire.memory).toEqual([1, 1, 1, 1]);
    expect(wire.counters.secure_drop_plain).toBe(1);
    expect(wire.write(2)).toBe('SUCCESS');
    expect(wire.memory).toEqual([2, 2, 2, 2]);
  });

  it('the twin: without protection it is executed', async () => {
    const wire = await plain();
    wire.write(1);
    wire.inject(forgedWrite(wire, 1));
    expect(wire.memory).toEqual([0xee, 0xee, 0xee, 0xee]);
  });
});

describe('replacement on the way', () => {
  it.each([
    ['in the BTH', PSP_PREFIX_BYTES + 9],
    ['in the PSP header', 3],
    ['in the SPI', 5],
    ['in the IV', 15],
    ['in the inner UDP header', 20],
    ['in the ciphertext', PSP_PREFIX_BYTES + 12 + 16],
  ])('%s is dropped, and the packet comes again', async (_, at) => {
    const wire = await secured();
    let isStruck = false;
    wire.onPacket = (datagram) => {
      if (isStruck) return datagram;
      isStruck = true;
      const bytes = datagram.bytes.slice();
      bytes[datagram.offset + at] ^= 0x10;
      return { ...datagram, bytes };
    };
    expect(wire.write(3)).toBe('SUCCESS');
    expect(wire.memory).toEqual([3, 3, 3, 3]);
    const { secure_drop_forged, secure_drop_malformed, secure_drop_unknown_spi } = wire.counters;
    expect(secure_drop_forged + secure_drop_malformed + secure_drop_unknown_spi).toBe(1);
    expect(wire.pair.a.device.counters().local_ack_timeout_err).toBe(1);
  });

  it('the twin: without protection other bytes are written, and a is told that all went well', async () => {
    const wire = await plain();
    let isStruck = false;
    wire.onPacket = (datagram) => {
      if (isStruck) return datagram;
      isStruck = true;
      return forgedWrite(wire, 0);
    };
    expect(wire.write(3)).toBe('SUCCESS');
    expect(wire.memory).toEqual([0xee, 0xee, 0xee, 0xee]);
  });
});

describe('replay of what was recorded', () => {
  it('is dropped, also once the PSNs have come round', async () => {
    const wire = await secured();
    wire.write(1);
    const [recorded] = wire.seen;
    wire.write(2);
    for (let n = 0; n < 3; n++) wire.inject(recorded);
    expect(wire.memory).toEqual([2, 2, 2, 2]);
    expect(wire.counters.secure_drop_replayed).toBe(3);
    await expectPsnReached(wire);
    wire.inject(recorded);
    expect(wire.memory).toEqual([2, 2, 2, 2]);
    expect(wire.counters.secure_drop_replayed).toBe(4);
  });

  it('the twin: without protection an old packet is executed when its PSN is due again', async () => {
    const wire = await plain();
    wire.write(1);
    const [recorded] = wire.seen;
    wire.write(2);
    await expectPsnReached(wire);
    wire.inject(recorded);
    expect(wire.memory).toEqual([1, 1, 1, 1]);
  });
});

/** The receiver expects the first PSN again, as after 2^24 packets. */
async function expectPsnReached({ pair: { a, b } }: Wire): Promise<void> {
  await b.qp.modify({ state: 'RESET' });
  await b.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: 15 });
  await b.qp.modify({
    state: 'RTR',
    av: { address: a.host.address },
    pathMtu: 1024,
    destQpn: a.qp.qpn,
    remoteSourcePort: 'flow',
    rqPsn: a.startPsn,
    maxDestRdAtomic: 16,
    minRnrTimer: 12,
  });
}

describe('truncation', () => {
  it('at every length is dropped', async () => {
    const wire = await secured();
    wire.write(1);
    const [recorded] = wire.seen;
    const before = wire.counters.rx_packets;
    for (let length = 0; length < recorded.length; length++) wire.inject({ ...recorded, length });
    expect(wire.counters.rx_packets).toBe(before);
    const { secure_drop_plain, secure_drop_malformed, secure_drop_replayed, secure_drop_forged } = wire.counters;
    expect(secure_drop_plain + secure_drop_malformed + secure_drop_replayed + secure_drop_forged).toBe(recorded.length);
  });
});

describe('reflection', () => {
  it('of a packet to its sender is dropped: keys have a direction', async () => {
    const wire = await secured();
    wire.write(1);
    const { host, device } = wire.pair.a;
    const [recorded] = wire.seen;
    const spiOfA = recorded.bytes.slice();
    spiOfA[6] = 0x0a; // The SPI that a listens to.
    const reflected = { ...recorded, source: recorded.destination, destination: recorded.source };
    const before = device.counters().rx_packets;
    host.receive(reflected);
    host.receive({ ...reflected, bytes: spiOfA });
    const counters = device.counters();
    expect(counters.rx_packets).toBe(before);
    // The second one may be taken for a replay, because both directions count from 0.
    expect(counters.secure_drop_unknown_spi).toBe(1);
    expect(counters.secure_drop_forged + counters.secure_drop_replayed).toBe(1);
  });

  it('from another address is dropped, whatever the keys', async () => {
    const wire = await secured();
    wire.onPacket = () => undefined;
    wire.pair.a.qp.postSend({
      opcode: 'RDMA_WRITE',
      sges: [wire.pair.a.mr.sge(0, 8)],
      remoteAddr: wire.pair.b.mr.addr,
      rkey: wire.pair.b.mr.rkey,
    });
    wire.pair.run({ untilNs: 100_000 });
    wire.inject({ ...wire.seen[0], source: wire.pair.b.host.address });
    expect(wire.counters.secure_drop_address).toBe(1);
    expect(wire.counters.rx_packets).toBe(0);
  });
});

const FATAL_NAK = 0x60 | 1;
describe('answers that end connections or slow them', () => {
  const toA = (wire: Wire, opcode: string, fields: Partial<RoceFields>): RxDatagram => {
    return wire.forge(opcode, fields, undefined, wire.pair.a);
  };
  const DCQCN = { attrA: { rateControl: { name: 'dcqcn', linkRateBps: 10e9 } } } as const;

  it.each([
    ['a fatal NAK', 'RC ACKNOWLEDGE', { syndrome: FATAL_NAK, msn: 0 }],
    ['a congestion notification', 'CNP CNP', { becn: true }],
    ['an ACK of what was never received', 'RC ACKNOWLEDGE', { syndrome: 0x1f, msn: 5 }],
  ] as const)('%s does nothing', async (_, opcode, fields) => {
    const wire = await secured(DCQCN);
    wire.write(1);
    wire.onPacket = () => undefined;
    const { a } = wire.pair;
    a.qp.postSend({ opcode: 'SEND', sges: [a.mr.sge(0, 8)] });
    wire.pair.run({ untilNs: wire.pair.events.nowNs + 50_000 });
    a.host.receive(toA(wire, opcode, { psn: (a.startPsn + 1) & 0xffffff, ...fields }));
    expect(a.device.counters()).toMatchObject({ secure_drop_plain: 1, rp_cnp_handled: 0 });
    expect(a.qp.state).toBe('RTS');
    expect(a.cq.poll(1)).toEqual([]);
  });
});

describe('downgrade', () => {
  it('to plain packets is refused in both modes once there are keys', async () => {
    const wire = await secured({ secure: { mode: 'prefer' } });
    wire.write(1);
    wire.inject(forgedWrite(wire, 1));
    expect(wire.memory).toEqual([1, 1, 1, 1]);
    expect(wire.counters.secure_drop_plain).toBe(1);
  });

  it('nothing leaves without keys where protection is required, and goes plain where it is preferred', async () => {
    for (const [mode, leaves] of [
      ['require', false],
      ['prefer', true],
    ] as const) {
      const wire = await secured({ secure: { mode } });
      for (const port of wire.pair.ports!) for (const { terms } of [...port.associations]) port.dissolve(terms.spi);
      const { a, b } = wire.pair;
      a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 8)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
      wire.pair.run({ untilNs: 1e6 });
      expect(wire.seen.length > 0).toBe(leaves);
      expect(a.device.counters().secure_tx_drop_no_association > 0).toBe(!leaves);
    }
  });
});

describe('a peer that restarts', () => {
  it('gets new keys; what the old ones sealed is refused', async () => {
    const wire = await secured();
    wire.write(1);
    const [old] = wire.seen;
    const [a, b] = wire.pair.ports!;
    for (const port of [a, b]) for (const { terms } of [...port.associations]) port.dissolve(terms.spi);
    await associate(a, b, 1);
    expect(wire.write(2)).toBe('SUCCESS');
    wire.inject(old);
    expect(wire.memory).toEqual([2, 2, 2, 2]);
    expect(wire.counters.secure_drop_unknown_spi).toBe(1);
  });
});

describe('goodput of the honest pair', () => {
  const DCQCN = { attrA: { rateControl: { name: 'dcqcn', linkRateBps: 10e9 } } } as const;
  const ROUNDS = 30;
  const BYTES = 16_384;

  /** What is done at each packet to b, after it has been recorded and before it arrives. */
  const attacks: ReadonlyArray<readonly [string, (wire: Wire, datagram: RxDatagram) => void]> = [
    ['none', () => {}],
    ['injection', (wire) => wire.inject(forgedWrite(wire, 1))],
    ['a bit that is changed', (wire, datagram) => wire.inject(flipped(datagram, PSP_PREFIX_BYTES + 20))],
    ['another key phase', (wire, datagram) => wire.inject(flipped(datagram, 4, 0x80))],
    ['an IV far ahead', (wire, datagram) => wire.inject(flipped(datagram, 9, 0x10))],
    ['another SPI', (wire, datagram) => wire.inject(flipped(datagram, 6))],
    ['truncation', (wire, datagram) => wire.inject({ ...datagram, length: datagram.length - 40 })],
    ['replay', (wire) => wire.inject(wire.seen[0])],
    ['reflection', reflect],
    ['a flood of CNPs', (wire) => toA(wire, 'CNP CNP', { becn: true })],
    [
      'a false ACK',
      (wire) => {
        toA(wire, 'RC ACKNOWLEDGE', { psn: wire.pair.a.startPsn, syndrome: 0x1f, msn: 9 });
      },
    ],
    [
      'a fatal NAK',
      (wire) => {
        toA(wire, 'RC ACKNOWLEDGE', { psn: wire.pair.a.startPsn, syndrome: FATAL_NAK, msn: 0 });
      },
    ],
  ];

  function flipped(datagram: RxDatagram, at: number, bits = 1): RxDatagram {
    const bytes = datagram.bytes.slice();
    bytes[datagram.offset + at] ^= bits;
    return { ...datagram, bytes };
  }

  function reflect({ pair: { a, b } }: Wire, datagram: RxDatagram): void {
    a.host.receive({ ...datagram, bytes: datagram.bytes.slice(), source: b.host.address, destination: a.host.address });
  }

  function toA(wire: Wire, opcode: string, fields: Partial<RoceFields>): void {
    wire.pair.a.host.receive(wire.forge(opcode, fields, undefined, wire.pair.a));
  }

  /** Nanoseconds of virtual time for the rounds, with an attack at each packet. */
  async function timeUnder(attack: (wire: Wire, datagram: RxDatagram) => void, options: PairOptions): Promise<number> {
    const wire = await Wire.between({ ...DCQCN, ...options });
    wire.write(1);
    const startNs = wire.pair.events.nowNs;
    wire.onPacket = (datagram) => {
      attack(wire, datagram);
      return datagram;
    };
    for (let round = 0; round < ROUNDS; round++) expect(wire.write(round, BYTES)).toBe('SUCCESS');
    expect(wire.memory).toEqual(new Array(4).fill(ROUNDS - 1));
    return wire.pair.events.nowNs - startNs;
  }

  it.each(attacks)('is within 5 % of that without attack: %s', async (_, attack) => {
    const withoutNs = await timeUnder(() => {}, { secure: {} });
    expect((await timeUnder(attack, { secure: {} })) / withoutNs).toBeLessThan(1.05);
  });

  it('the twin: plain packets, and a flood of CNPs takes much of it', async () => {
    const [, flood] = attacks.find(([name]) => name === 'a flood of CNPs')!;
    expect((await timeUnder(flood, {})) / (await timeUnder(() => {}, {}))).toBeGreaterThan(1.2);
  });
});
