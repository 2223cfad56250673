/** Wireshark as second opinion on what `--pcap` writes: it must see the packets we sent, and nothing malformed. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { auditOf, expectClean } from '../../packages/inspect/test/audit/capture-file.js';
import { captureTraffic } from './captured-traffic.js';
import { isBuilt, Program } from './executable.js';
import { hasScapy, hasTshark, icrcByScapy, tsharkFields } from './second-opinions.js';

const why = hasTshark ? '' : ' (skipped: tshark is not installed)';
const FIELDS = ['infiniband.bth.opcode', 'infiniband.bth.psn', 'infiniband.bth.destqp', '_ws.malformed'];

const SERVER = '127.43.0.1';
const CLIENT = '127.43.0.2';
const folder = mkdtempSync(join(tmpdir(), 'rocev2-'));
afterAll(() => rmSync(folder, { recursive: true }));

let tcpPort = 26300;

/** A transfer whose client writes a capture. `both` are options of either side. */
async function captured(op: string, args: readonly string[], both: readonly string[] = []): Promise<string> {
  const port = String(tcpPort++);
  const server = Program.rocev2('bw', op, '-p', port, '--bind', SERVER, ...both);
  try {
    await server.writes('stderr', /waiting for/);
    const file = join(folder, `${op}-${port}.pcapng`);
    const client = Program.rocev2('bw', op, SERVER, '-p', port, '--bind', CLIENT, '--pcap', file, ...both, ...args);
    expect(await client.ended(), client.stderr).toBe(0);
    return file;
  } finally {
    server.kill('SIGKILL');
  }
}

/** Opcode, PSN and QPN of every packet, and what tshark calls malformed. */
function asTsharkSees(file: string): { packets: number[][]; malformed: string[] } {
  const rows = tsharkFields(file, FIELDS);
  return {
    packets: rows.map((row) => row.slice(0, 3).map(Number)),
    malformed: rows.map((row) => row[3] ?? '').filter((text) => text !== ''),
  };
}

async function asWeDecode(file: string): Promise<number[][]> {
  const decode = Program.rocev2('decode', file, '--json');
  expect(await decode.ended()).toBe(0);
  return decode.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter((line) => line.type === 'packet')
    .map(({ bth }) => [bth.opcode, bth.psn, bth.destQpn]);
}

describe.runIf(isBuilt && hasTshark)(`captures in Wireshark${why}`, () => {
  it.each([
    ['write', ['-s', '10000', '-n', '20']],
    ['read', ['-s', '10001', '-n', '20', '--mtu', '1024']],
    ['send', ['-s', '3', '-n', '20']],
    ['atomic', ['-n', '20']],
    ['write', ['-s', '50000', '-n', '20', '--loss', 'random=0.02', '-u', '13'], ['--recovery', 'selective-repeat']],
    ['write', ['-s', '50000', '-n', '20', '--mtu', '256', '--loss', 'random=0.02', '-u', '13']],
  ])('%s %j', async (op, args, both = []) => {
    const file = await captured(op, args, both);
    const { packets, malformed } = asTsharkSees(file);
    expect(malformed).toEqual([]);
    expect(packets.length).toBeGreaterThan(20);
    expect(packets).toEqual(await asWeDecode(file));
    expectClean(await auditOf(file));
  });
});

const WIRES = [
  ['IPv4', ['10.77.1.1', '10.77.1.2']],
  ['IPv6', ['fd77:1::1', 'fd77:1::2']],
] as const;

const REQUESTS_AND_ANSWERS = [...Array(0x15).keys(), 0x16, 0x17]; // 0x15 is reserved
const UD_SEND_ONLY = 0x64;
const UD_SEND_ONLY_WITH_IMMEDIATE = 0x65;
const CM_ATTRIBUTES = { REQ: 0x10, REP: 0x13, RTU: 0x14, DREQ: 0x15, DREP: 0x16 };
const SYNDROME_ACK = 0x1f;
const SYNDROME_REMOTE_ACCESS = 0x62;

describe.runIf(isBuilt && hasTshark)(`captures of frame ports in Wireshark${why}`, () => {
  it.each(WIRES)('RDMA CM, UD and every RC operation, %s', async (family, addresses) => {
    const file = join(folder, `frames-${family}.pcapng`);
    const { rcQpns, udQpns } = await captureTraffic(file, addresses);

    const { packets, malformed } = asTsharkSees(file);
    expect(malformed).toEqual([]);
    expect(packets).toEqual(await asWeDecode(file));
    const ofRc = packets.filter(([opcode]) => opcode < UD_SEND_ONLY);
    expect([...new Set(ofRc.map(([opcode]) => opcode))].sort((x, y) => x - y)).toEqual(REQUESTS_AND_ANSWERS);
    expect(new Set(ofRc.map(([, , qpn]) => qpn))).toEqual(new Set(rcQpns));

    const mads = tsharkFields(file, [
      'infiniband.mad.attributeid',
      'infiniband.cm.req.localqpn',
      'infiniband.cm.rep.localqpn',
    ])
      .map((row) => row.map(Number))
      .filter(([attribute]) => attribute !== 0);
    const { REQ, REP, RTU, DREQ, DREP } = CM_ATTRIBUTES;
    expect(mads).toEqual([
      [REQ, rcQpns[0], 0],
      [REP, 0, rcQpns[1]],
      [RTU, 0, 0],
      [DREQ, 0, 0],
      [DREP, 0, 0],
    ]);

    const datagrams = tsharkFields(file, ['infiniband.bth.opcode', 'infiniband.bth.destqp', 'infiniband.deth.srcqp'])
      .map((row) => row.map(Number))
      .filter(([, destination]) => destination === udQpns[1]);
    const opcodes = [UD_SEND_ONLY, UD_SEND_ONLY, UD_SEND_ONLY, UD_SEND_ONLY_WITH_IMMEDIATE];
    expect(datagrams).toEqual(opcodes.map((opcode) => [opcode, udQpns[1], udQpns[0]]));

    const syndromes = tsharkFields(file, ['infiniband.aeth.syndrome'])
      .flat()
      .filter((text) => text !== '')
      .map(Number);
    expect(syndromes.pop()).toBe(SYNDROME_REMOTE_ACCESS);
    expect(new Set(syndromes)).toEqual(new Set([SYNDROME_ACK]));
  });

  it('packets lost and doubled on their way', async () => {
    const file = join(folder, 'faults.pcapng');
    await captureTraffic(file, WIRES[0][1], 'opcode=RDMA_WRITE_MIDDLE:once;opcode=ACKNOWLEDGE:once;duplicate=0.3');
    const { packets, malformed } = asTsharkSees(file);
    expect(malformed).toEqual([]);
    expect(packets).toEqual(await asWeDecode(file));
  });
});

describe.runIf(isBuilt && hasScapy)(
  `the ICRC by scapy${hasScapy ? '' : ' (skipped: python3-scapy is not installed)'}`,
  () => {
    it('agrees in every packet of a frame port', async () => {
      const file = join(folder, 'scapy-frames.pcapng');
      await captureTraffic(file, WIRES[0][1]);
      const { good, bad } = icrcByScapy(file);
      expect(bad).toBe(0);
      expect(good).toBeGreaterThan(50);
    });

    it('agrees in every packet of a UDP port', async () => {
      const { good, bad } = icrcByScapy(await captured('read', ['-s', '10001', '-n', '20', '--mtu', '1024']));
      expect(bad).toBe(0);
      expect(good).toBeGreaterThan(200);
    });

    it('differs in packets that were corrupted', async () => {
      const transfer = ['-s', '20000', '-n', '5', '--mtu', '1024', '-u', '13'];
      const file = await captured('write', [...transfer, '--loss', 'host>wire:corrupt=0.1']);
      expect(icrcByScapy(file).bad).toBeGreaterThan(0);
    });
  },
);
