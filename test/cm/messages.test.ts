import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { encodeIpPrivateData, parseIpPrivateData, tcpServiceId } from '../../src/cm/ip-addressing.js';
import { buildMad, type CmMad, encodeMad, type MadFault, parseMad } from '../../src/cm/messages.js';
import { fromHex, toHex } from '../../src/core/bytes.js';
import { IpAddress } from '../../src/packet/address.js';
import { GOLDEN, goldenMads } from './golden-mads.js';

function parsed(mad: Uint8Array): CmMad {
  const result = parseMad(mad);
  if (typeof result === 'string') throw new Error(`not a CM datagram: ${result}`);
  return result;
}

const captures = readdirSync(GOLDEN)
  .filter((name) => name.endsWith('.pcapng'))
  .map((name) => [name, goldenMads(name)] as const)
  .filter(([, mads]) => mads.length > 0);

describe('CM datagrams of the captures', () => {
  it('are there, of every message type but MRA', () => {
    const names = new Set(captures.flatMap(([, mads]) => mads.map((mad) => parsed(mad).name)));
    expect([...names].sort()).toEqual(['DREP', 'DREQ', 'REJ', 'REP', 'REQ', 'RTU', 'SIDR_REP', 'SIDR_REQ']);
    expect(captures.flatMap(([, mads]) => mads).length).toBeGreaterThan(50);
  });

  it.each(captures)('%s: parse and encode to the same bytes', (_, mads) => {
    for (const mad of mads) expect(toHex(encodeMad(parsed(mad)))).toBe(toHex(mad));
  });

  it('rping: the REQ says what rping asks for', () => {
    const request = parsed(goldenMads('cm-rping-v4.pcapng')[0]);
    if (request.name !== 'REQ') throw new Error(request.name);
    expect(request.fields).toMatchObject({
      serviceId: tcpServiceId(7174),
      localCaGuid: 0x007700fffe000002n,
      responderResources: 1,
      initiatorDepth: 1,
      retryCount: 7,
      rnrRetryCount: 7,
      maxCmRetries: 15,
      pathMtu: 5,
      startingPsn: 0x7a95b5,
      remoteResponseTimeout: 20,
      localResponseTimeout: 20,
      primaryHopLimit: 64,
      primaryLocalAckTimeout: 19,
      alternateLocalLid: 0,
    });
    expect(IpAddress.fromBytes(request.fields.primaryLocalGid).text).toBe('10.77.0.2');
    const addressing = parseIpPrivateData(request.fields.privateData)!;
    expect(`${addressing.source} ${addressing.destination}`).toBe('10.77.0.2 10.77.0.3');
  });
});

describe('a REQ worked out by hand', () => {
  const vector = fromHex(`
    010702030000000000000001112233440010000000000000 1122334400000000 0000000001061c06 0200000000000001 00000000 00000000
    00001101 00000001 000000a0 abcdefa7 ffff37f0 ffffffff 00000000000000000000ffffc0000201 00000000000000000000ffffc0000202
    00000002 00400088 ${'00'.repeat(44)} 0040b26e 000000000000000000000000c0000201 000000000000000000000000c0000202 ${'00'.repeat(56)}`);

  it('is what we build from its fields', () => {
    const source = IpAddress.parse('192.0.2.1');
    const destination = IpAddress.parse('192.0.2.2');
    const mad = buildMad('REQ', 0x0000000111223344n, {
      localCommId: 0x11223344,
      serviceId: tcpServiceId(7174),
      localCaGuid: 0x0200000000000001n,
      localQpn: 0x11,
      responderResources: 1,
      initiatorDepth: 1,
      remoteResponseTimeout: 20,
      startingPsn: 0xabcdef,
      localResponseTimeout: 20,
      retryCount: 7,
      pkey: 0xffff,
      pathMtu: 3,
      rnrRetryCount: 7,
      maxCmRetries: 15,
      primaryLocalLid: 0xffff,
      primaryRemoteLid: 0xffff,
      primaryLocalGid: source.gid,
      primaryRemoteGid: destination.gid,
      primaryPacketRate: 2,
      primaryHopLimit: 64,
      primaryLocalAckTimeout: 17,
      privateData: encodeIpPrivateData({ source, destination, sourcePort: 45678 }, new Uint8Array(0)),
    });
    expect(toHex(mad)).toBe(toHex(vector));
  });

  it.each<[string, number, number, MadFault]>([
    ['another management class', 1, 0x04, 'class'],
    ['another base version', 0, 2, 'version'],
    ['another class version', 2, 1, 'version'],
    ['another method', 3, 0x81, 'method'],
    ['an unknown attribute', 17, 0x30, 'attribute'],
  ])('is not taken with %s', (_, offset, value, fault) => {
    const mad = vector.slice();
    mad[offset] = value;
    expect(parseMad(mad)).toBe(fault);
  });

  it('is not taken a byte short', () => {
    expect(parseMad(vector.subarray(0, 255))).toBe('length');
  });
});

describe('the IP addressing header', () => {
  const user = Uint8Array.from({ length: 56 }, (_, i) => i + 1);

  it.each([
    ['10.77.0.2', '10.77.0.3'],
    ['fd77::2', 'fd77::3'],
  ])('holds %s and the 56 bytes of the user', (from, to) => {
    const endpoints = { source: IpAddress.parse(from), destination: IpAddress.parse(to), sourcePort: 50_000 };
    const back = parseIpPrivateData(encodeIpPrivateData(endpoints, user))!;
    expect({ ...back, source: back.source.text, destination: back.destination.text }).toEqual({
      source: from,
      destination: to,
      sourcePort: 50_000,
      userData: user,
    });
  });

  it.each([
    ['its own', 0, 0x10],
    ['IP', 1, 0x50],
  ])('of another version of %s is refused', (_, offset, value) => {
    const loopback = IpAddress.parse('127.0.0.1');
    const data = encodeIpPrivateData({ source: loopback, destination: loopback, sourcePort: 1 }, user);
    data[offset] = value;
    expect(parseIpPrivateData(data)).toBeUndefined();
  });
});
