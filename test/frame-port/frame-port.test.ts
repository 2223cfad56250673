import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { type LiveSwitch, openLiveSwitch } from '../../packages/lab/src/live/live-switch.js';
import { SeededRandom } from '../../src/core/random.js';
import { parseUdpEndpoint, type UdpEndpoint } from '../../src/dgram-ext/udp-endpoint.js';
import { nowNs } from '../../src/driver/system-clock.js';
import { IpAddress } from '../../src/packet/address.js';
import { formatMac, parseMac } from '../../src/packet/ethernet.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { isIpv4ChecksumGood } from '../../src/packet/ipv4.js';
import { PFC_FRAME_BYTES, PfcFrame, writePfc } from '../../src/packet/pfc.js';
import { FaultPlan } from '../../src/port/faults/fault-plan.js';
import { type FramePort, type FramePortOptions, openFramePort } from '../../src/port/frame/udp-frame-port.js';
import { collect, type PortPair, portContract, sendAll, until } from '../contracts/port-contract.js';
import { freeUdpPorts } from '../support/free-port.js';

const V4 = ['10.0.0.1', '10.0.0.2'].map((text) => IpAddress.parse(text));
const V6 = ['fd00::1', 'fd00::2'].map((text) => IpAddress.parse(text));
const ANY_PORT = parseUdpEndpoint('127.0.0.1:0');
const random = new SeededRandom(1).stream('mac');
const hasIpv6 = Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address === '::1'));

/** Free UDP ports, for wires whose two ends must know each other beforehand. */
async function freeEndpoints(host: string, count: number): Promise<UdpEndpoint[]> {
  return (await freeUdpPorts(count, host)).map((port) => ({ host: IpAddress.parse(host), port }));
}

async function openAll(ports: readonly FramePort[], addresses: readonly IpAddress[]): Promise<void> {
  await Promise.all(ports.map((port) => port.open()));
  await Promise.all([ports[0].resolve(addresses[1]), ports[1].resolve(addresses[0])]);
}

async function openBackToBack(addresses: readonly IpAddress[], host = '127.0.0.1'): Promise<PortPair> {
  const [left, right] = await freeEndpoints(host, 2);
  const a = openFramePort({ nowNs, address: addresses[0], local: left, remote: right, random });
  const b = openFramePort({ nowNs, address: addresses[1], local: right, remote: left, random });
  await openAll([a, b], addresses);
  return {
    a,
    b,
    conflicting: () => openFramePort({ nowNs, address: addresses[0], local: left, remote: right, random }),
  };
}

async function openThroughSwitch(
  addresses: readonly IpAddress[],
  faults?: FaultPlan,
): Promise<PortPair & { a: FramePort; b: FramePort; wire: LiveSwitch }> {
  const wire = await openLiveSwitch({
    ports: ['a', 'b', 'c'].map((name) => ({ name, local: ANY_PORT })),
    ...(faults === undefined ? {} : { faults }),
  });
  const locals = await freeEndpoints('127.0.0.1', 2);
  const open = (i: number, name: string) =>
    openFramePort({ nowNs, address: addresses[i], local: locals[i], remote: wire.local(name), random });
  const [a, b] = [open(0, 'a'), open(1, 'b')];
  await openAll([a, b], addresses);
  return { a, b, wire, conflicting: () => open(0, 'a'), dispose: () => wire.close() };
}

const TRAITS = { seesTrafficClass: true, seesIpId: true };
portContract('frame port v4, back to back', TRAITS, () => openBackToBack(V4));
portContract('frame port v6, back to back', TRAITS, () => openBackToBack(V6));
portContract('frame port v4, through a switch', TRAITS, () => openThroughSwitch(V4));
portContract('frame port v6, through a switch', TRAITS, () => openThroughSwitch(V6));
if (hasIpv6) portContract('frame port v4 over UDP v6', TRAITS, () => openBackToBack(V4, '::1'));
else it.skip('frame port over UDP v6: this host has no ::1', () => {});

/** The bare end of a wire: what a port sends, and a way to send it anything. */
async function openWireEnd(options: Partial<FramePortOptions> = {}) {
  const [end] = await freeEndpoints('127.0.0.1', 1);
  const socket = createSocket('udp4');
  const frames: Uint8Array[] = [];
  socket.on('message', (bytes) => frames.push(bytes));
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const remote = { host: IpAddress.parse('127.0.0.1'), port: socket.address().port };
  const mac = parseMac('02:00:00:00:00:01');
  const port = openFramePort({ nowNs, address: V4[0], mac, local: end, remote, random, ...options });
  await port.open();
  return {
    port,
    frames,
    send: (bytes: Uint8Array) => socket.send(bytes, end.port, '127.0.0.1'),
    end,
    close: async () => {
      await port.close();
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    },
  };
}

describe('frame port', () => {
  const PEER = parseMac('02:00:00:00:00:02');
  const OTHER = { address: V4[1], udpPort: 4791 };

  it('writes headers as they must be', async () => {
    const wire = await openWireEnd({ neighbors: [{ address: V4[1], mac: PEER }] });
    sendAll(wire.port, OTHER, [Uint8Array.of(...Array(24).keys())], {
      ecn: 2,
      dscp: 26,
      sourcePort: 0xc999,
      firstIpId: 77,
    });
    await until(() => wire.frames.length === 2, 'the announcement and the frame');
    const [announcement, bytes] = wire.frames;
    expect(formatMac(announcement.subarray(0, 6))).toBe('ff:ff:ff:ff:ff:ff');
    const frame = new FrameInfo();
    expect(parseFrame(bytes, 0, bytes.length, frame)).toBe(FRAME_OK);
    expect(bytes.length).toBe(14 + 20 + 8 + 24);
    expect(formatMac(bytes.subarray(0, 6))).toBe('02:00:00:00:00:02');
    expect(formatMac(bytes.subarray(6, 12))).toBe('02:00:00:00:00:01');
    expect(frame).toMatchObject({ ecn: 2, dscp: 26, ttl: 64, ipId: 77, dontFragment: true });
    expect(frame).toMatchObject({ sourcePort: 0xc999, destinationPort: 4791, payloadBytes: 24 });
    expect(isIpv4ChecksumGood(bytes, 14)).toBe(true);
    expect([bytes[40], bytes[41]]).toEqual([0, 0]);
    await wire.close();
  });

  it('drops, counts and asks while a neighbour is unknown, and says so when nobody answers', async () => {
    const wire = await openWireEnd();
    sendAll(wire.port, OTHER, [new Uint8Array(20), new Uint8Array(20)]);
    await until(() => wire.frames.length === 2, 'the announcement and one question');
    expect(wire.port.counters).toEqual({ txDatagrams: 0, rxDatagrams: 0, txErrors: 2 });
    expect(wire.port.drops).toEqual({ tx_unresolved: 2 });
    await expect(wire.port.resolve(V4[1])).rejects.toMatchObject({
      code: 'ERR_ROCE_CONNECT',
      message: expect.stringContaining('no neighbour answers for 10.0.0.2'),
    });
    await wire.close();
  });

  it('counts by reason what it does not hand up, and survives any bytes', async () => {
    const wire = await openWireEnd({ neighbors: [{ address: V4[1], mac: PEER }] });
    let handedUp = 0;
    wire.port.onDatagram = () => handedUp++;
    sendAll(wire.port, OTHER, [new Uint8Array(20)]);
    await until(() => wire.frames.length === 2, 'a frame to mutate');
    const good = Uint8Array.from(wire.frames[1]);
    good.set(parseMac('02:00:00:00:00:01'), 0);
    good.set(V4[1].bytes, 26);
    good.set(V4[0].bytes, 30);
    const changed = (at: number, ...values: readonly number[]): Uint8Array => {
      const bytes = good.slice();
      bytes.set(values, at);
      return bytes;
    };
    wire.send(good); // exchanging the addresses leaves the header checksum as it was
    wire.send(changed(0, ...PEER));
    wire.send(changed(26, ...V4[0].bytes, ...V4[1].bytes)); // to another address at this MAC
    wire.send(changed(36, 0x12, 0xb6)); // UDP port 4790
    wire.send(changed(24, 0, 0)); // the header checksum
    wire.send(changed(12, 0x12, 0x34)); // the ethertype
    wire.send(good.subarray(0, 9));
    wire.send(good.subarray(0, 30));
    const stranger = createSocket('udp4');
    await new Promise<void>((resolve) => stranger.send(good, wire.end.port, '127.0.0.1', () => resolve()));
    const expected = {
      not_my_mac: 1,
      not_my_address: 1,
      not_roce_port: 1,
      bad_ip_checksum: 1,
      not_ip: 1,
      frame_too_short: 2,
      stranger: 1,
    };
    const total = () => Object.values(wire.port.drops).reduce((sum, count) => sum + count, 0);
    await until(() => handedUp === 1 && total() === 8, 'every frame');
    expect(wire.port.drops).toEqual(expected);

    const noise = new SeededRandom(5).stream('noise');
    for (let i = 0; i < 400; i++) {
      const bytes = good.slice(0, noise.u32() % (good.length + 1));
      for (let flips = noise.u32() % 6; flips > 0 && bytes.length > 12; flips--) {
        bytes[12 + (noise.u32() % (bytes.length - 12))] ^= 1 << (noise.u32() % 8);
      }
      wire.send(bytes);
    }
    const { port } = wire;
    await until(() => total() + port.counters.rxDatagrams === 409, 'all noise');
    await stranger.close();
    await wire.close();
  });

  it('hands up the pauses of its link partner, in bit times of the link, and nothing that only looks like one', async () => {
    const wire = await openWireEnd({ rateBps: 1e9 });
    const pauses: Array<readonly [priority: number, durationNs: number]> = [];
    wire.port.onPause = (priority, durationNs) => pauses.push([priority, durationNs]);
    const pfc = new PfcFrame();
    pfc.enabled = 0b1001_0000;
    pfc.quanta.set([7, 7, 7, 7, 1000, 7, 7, 0]);
    const frame = new Uint8Array(PFC_FRAME_BYTES);
    writePfc(frame, 0, PEER, pfc);
    const wholeLink = frame.slice();
    wholeLink.set([0x00, 0x01], 14);
    wire.send(wholeLink);
    wire.send(frame);
    await until(() => pauses.length === 2, 'both priorities');
    expect(pauses).toEqual([
      [4, 512_000],
      [7, 0],
    ]);
    expect(wire.port.drops).toEqual({ bad_pfc: 1 });
    await wire.close();
  });

  it('has a random, locally administered unicast MAC address of its own', () => {
    const make = () => openFramePort({ nowNs, address: V4[0], local: ANY_PORT, remote: ANY_PORT, random }).mac;
    const macs = Array.from({ length: 50 }, make);
    expect(new Set(macs.map(formatMac)).size).toBe(50);
    expect(macs.every((mac) => (mac[0] & 3) === 2)).toBe(true);
  });

  it('derives its path MTU from the MTU of the wire', () => {
    const pathMtu = (mtuBytes?: number) =>
      openFramePort({
        nowNs,
        address: V4[0],
        local: ANY_PORT,
        remote: ANY_PORT,
        random,
        ...(mtuBytes === undefined ? {} : { mtuBytes }),
      }).pathMtuMax;
    expect([pathMtu(), pathMtu(1500), pathMtu(4200)]).toEqual([4096, 1024, 4096]);
  });

  it('refuses a wire with ends of two families, and a group address as its own', () => {
    const remote = parseUdpEndpoint('[::1]:1');
    expect(() => openFramePort({ nowNs, address: V4[0], local: ANY_PORT, remote, random })).toThrow(/both ends/);
    const mac = parseMac('03:00:00:00:00:01');
    expect(() => openFramePort({ nowNs, address: V4[0], mac, local: ANY_PORT, remote: ANY_PORT, random })).toThrow(
      /unicast/,
    );
  });
});

describe('frame ports on a live switch', () => {
  it('lose exactly one in 256 by identification, and nothing without a rule', async () => {
    const lost = async (rules: string): Promise<number> => {
      const faults = FaultPlan.parse(rules, new SeededRandom(1));
      const { a, b, wire } = await openThroughSwitch(V4, faults);
      const received = collect(b);
      const counted = () => received.length + wire.counters['b'].tx_dropped_fault;
      for (let sent = 0; sent < 1024; sent += 64) {
        const payloads = Array.from({ length: 64 }, () => new Uint8Array(64));
        sendAll(a, b, payloads, { firstIpId: sent });
        await until(() => counted() === sent + 64, 'the round');
      }
      await Promise.all([a.close(), b.close(), wire.close()]);
      return 1024 - received.length;
    };
    expect(await lost('a>b:ip-id-lsb=0xff')).toBe(4);
    expect(await lost('b>a:ip-id-lsb=0xff')).toBe(0);
  });

  it('reach only the right port once the switch has learnt', async () => {
    const { a, b, wire } = await openThroughSwitch(V4);
    const received = collect(b);
    const before = wire.counters['c'].tx_packets;
    sendAll(a, b, [new Uint8Array(20), new Uint8Array(20)]);
    await until(() => received.length === 2, 'both');
    expect(wire.counters['c'].tx_packets).toBe(before);
    expect(wire.counters['c'].tx_errors).toBe(before); // nobody is plugged in there
    await Promise.all([a.close(), b.close(), wire.close()]);
  });
});
