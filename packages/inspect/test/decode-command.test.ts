import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CaptureReader } from '../../../src/port/capture/capture-reader.js';
import type { DecodedPacket } from '../../../src/port/capture/decoded-packet.js';
import type { FlowEvent, FlowSummary } from '../../../src/port/capture/flow-tracker.js';
import { run } from '../../cli/test/run-in-process.js';

const GOLDEN = 'test/golden';
const CAPTURES = readdirSync(GOLDEN).filter((name) => name.endsWith('.pcapng'));
const SUMMARY = readFileSync(join(GOLDEN, 'summary.txt'), 'utf8').trim().split('\n');

type PacketLine = DecodedPacket & { readonly type: 'packet'; readonly events: FlowEvent[] };
interface SummaryLine {
  readonly type: 'summary';
  readonly packets: number;
  readonly otherPackets: number;
  readonly flows: FlowSummary[];
  readonly damage?: { readonly offset: number; readonly reason: string };
}

async function decodeJson(path: string, ...options: string[]) {
  const { exitCode, stdout, stderr } = await run(['decode', path, '--json', ...options]);
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const summary = lines.pop() as SummaryLine;
  return { exitCode, stderr, packets: lines as PacketLine[], summary };
}

/** The golden summary was made by another decoder, which abbreviates. */
function summaryName(operation: string): string {
  return operation
    .replace('RDMA_', '')
    .replace('_REQUEST', '_REQ')
    .replace('_RESPONSE', '_RESP')
    .replace('_WITH_IMMEDIATE', '_IMM')
    .replace('_WITH_INVALIDATE', '_INV')
    .replace('ACKNOWLEDGE', 'ACK')
    .replace('COMPARE_SWAP', 'CMP_SWAP');
}

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rocev2-decode-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function file(name: string, bytes: Uint8Array | string): string {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

describe('golden captures', () => {
  it('there are 48 of them', () => expect(CAPTURES).toHaveLength(48));

  it.each(CAPTURES)('%s: opcodes and NAKs as in the golden summary, every ICRC good, nothing unknown', async (name) => {
    const { exitCode, packets, summary } = await decodeJson(join(GOLDEN, name));
    expect(exitCode).toBe(0);
    const counts = new Map<string, number>();
    for (const { bth, icrc, malformed } of packets) {
      expect(malformed).toBeUndefined();
      expect(icrc).toBe('ok');
      expect([bth!.fecn, bth!.becn, bth!.pkey]).toEqual([false, false, 0xffff]);
      const key = summaryName(bth!.operation);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const text = Array.from(counts, ([key, count]) => `${key}:${count}`)
      .sort()
      .join(' ');
    const expected = SUMMARY.find((line) => line.startsWith(`${name}:`))!;
    expect(expected).toContain(`${packets.length} RoCE packets, ICRC ok ${packets.length} | ${text} |`);
    expect(summary.packets).toBe(packets.length);
    expect(summary.otherPackets).toBe(0);

    const naks = summary.flows.reduce((sum, flow) => sum + flow.naks, 0);
    const rnrNaks = summary.flows.reduce((sum, flow) => sum + flow.rnrNaks, 0);
    const expectedCount = (pattern: RegExp) => Number(pattern.exec(expected)?.[1] ?? 0);
    expect(naks).toBe(expectedCount(/'NAK\(\d\)': (\d+)/));
    expect(rnrNaks).toBe(expectedCount(/'RNR_NAK\(timer 20\)': (\d+)/));
  });

  it.each(CAPTURES)(
    '%s: the readable form has a line a packet, no wider than 160 columns but for 64-bit operands',
    async (name) => {
      const { stdout } = await run(['decode', join(GOLDEN, name)]);
      const lines = stdout.split('\n').slice(1);
      const packetLines = lines.slice(0, lines.indexOf(''));
      expect(stdout).toContain(`\n${packetLines.length} RoCEv2 packet`);
      for (const line of packetLines) if (!/compare=0x\w{9}/.test(line)) expect(line.length).toBeLessThanOrEqual(160);
      // Aligned: the ICRC column is at one place.
      expect(new Set(packetLines.map((line) => /\d {2}ok\b/.exec(line)?.index)).size).toBe(1);
    },
  );

  it.each([
    'loss-req-send-rc-v4',
    'loss-req-write-rc-v6',
    'loss-ack-send-rc-v4',
    'loss-atomic-resp-rc-v4',
    'loss-resp-read-rc-v4',
    'rnr-nak-rc-v4',
    'retry-exhausted-rc-v4',
  ])('%s: every request sent again is a retransmission, and no other', async (name) => {
    const { packets } = await decodeJson(join(GOLDEN, `${name}.pcapng`));
    const isRequest = (p: PacketLine) => p.aeth === undefined && !p.bth!.operation.includes('RESPONSE');
    // A second opinion without PSN arithmetic: READs resume in the middle, so their PSNs count as covered up to the response's end.
    const seen = new Set<string>();
    for (const p of packets.filter(isRequest)) {
      const key = (psn: number) => `${p.source} ${p.bth!.destQpn} ${psn & 0xffffff}`;
      expect(p.events.some((event) => event.kind === 'retransmission')).toBe(seen.has(key(p.bth!.psn)));
      const covered = Math.max(1, Math.ceil((p.reth?.dmaLength ?? 0) / 1024));
      const span = p.bth!.operation === 'RC RDMA_READ_REQUEST' ? covered : 1;
      for (let i = 0; i < span; i++) seen.add(key(p.bth!.psn + i));
    }
    expect(packets.filter((p) => p.events.some((event) => event.kind === 'retransmission')).length).toBeGreaterThan(0);
  });

  it('captures without loss tell no story', async () => {
    for (const name of CAPTURES.filter((n) =>
      /^(send|write|read|atomic|uc|ud|pingpong|pipeline|ib_|nvmeof|cm-rping)/.test(n),
    )) {
      const { packets } = await decodeJson(join(GOLDEN, name), '--flow');
      expect([name, packets]).toEqual([name, []]);
    }
  });

  it('lost READ responses show as gaps', async () => {
    const { summary } = await decodeJson(join(GOLDEN, 'loss-resp-read-rc-v4.pcapng'));
    expect(summary.flows.map(({ gaps, missingPsns }) => [gaps, missingPsns])).toEqual([
      [0, 0],
      [2, 2],
    ]);
  });

  it('connection management is named', async () => {
    const names = async (capture: string) => {
      const { packets } = await decodeJson(join(GOLDEN, capture));
      return packets.flatMap(({ mad }) =>
        mad ? [mad.rejectReason ? `${mad.name}: ${mad.rejectReason}` : mad.name] : [],
      );
    };
    expect(await names('cm-rping-v4.pcapng')).toEqual(['CM REQ', 'CM REP', 'CM RTU', 'CM DREQ', 'CM DREP']);
    expect(await names('cm-reject-v4.pcapng')).toEqual(['CM REQ', 'CM REJ: invalid service id']);
    expect((await names('cm-sidr-udaddy-v6.pcapng')).slice(0, 2)).toEqual(['CM SIDR_REQ', 'CM SIDR_REP']);
  });
});

describe('options', () => {
  const capture = join(GOLDEN, 'cm-rping-v4.pcapng');

  it('--qp keeps one queue pair, --limit stops early', async () => {
    const { packets } = await decodeJson(capture, '--qp', '0x35', '--limit', '3');
    expect(packets.map((p) => [p.number, p.bth!.destQpn])).toEqual([
      [4, 0x35],
      [7, 0x35],
      [9, 0x35],
    ]);
  });

  it('--no-icrc leaves the ICRC unchecked', async () => {
    const { packets } = await decodeJson(capture, '--no-icrc');
    expect(new Set(packets.map((p) => p.icrc))).toEqual(new Set(['unchecked']));
  });

  it('another UDP port finds nothing here, and says what was left out', async () => {
    const { exitCode, stdout, stderr } = await run(['decode', capture, '--udp-port', '4792']);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('packets with a correct ICRC go to UDP port 4791: use --udp-port 4791');
    expect(stdout).toBe('0 RoCEv2 packets in 0 flows, 41 other packets left out\n');
  });

  it('a wrong value is a usage error', async () => {
    const { exitCode, stderr } = await run(['decode', capture, '--limit', 'few']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("'few' is not a whole number from 1 up");
  });
});

describe('an interrupted run', () => {
  it('prints the summary of what it has seen and exits 130', async () => {
    const interrupt = new AbortController();
    interrupt.abort();
    const { exitCode, stdout, stderr } = await run(['decode', join(GOLDEN, 'ud-v4.pcapng')], {
      interrupted: interrupt.signal,
    });
    expect(exitCode).toBe(130);
    expect(stdout).toBe('0 RoCEv2 packets in 0 flows\n');
    expect(stderr).toContain('interrupted');
  });
});

describe('damaged input', () => {
  const whole = Uint8Array.from(readFileSync(join(GOLDEN, 'send-rc-mtu1024-v4.pcapng')));
  const lastPacketEnd = Array.from(new CaptureReader(whole), ({ bytes }) => bytes.byteOffset + bytes.length).at(-1)!;

  it('a flipped payload bit is a bad ICRC, and is counted', async () => {
    const flipped = Uint8Array.from(whole);
    flipped[lastPacketEnd - 5] ^= 1;
    const { exitCode, packets, summary } = await decodeJson(file('flipped.pcapng', flipped));
    expect(exitCode).toBe(0);
    expect(packets.filter((p) => p.icrc === 'bad').map((p) => p.number)).toEqual([25]);
    expect(summary.flows.reduce((sum, flow) => sum + flow.icrcBad, 0)).toBe(1);
  });

  it('a truncated file is decoded as far as it goes, and exits 1 saying where it stopped', async () => {
    const path = file('cut.pcapng', whole.subarray(0, lastPacketEnd - 1));
    const { exitCode, packets, summary, stderr } = await decodeJson(path);
    expect(exitCode).toBe(1);
    expect(packets).toHaveLength(24);
    expect(summary.damage?.reason).toBe('the file ends inside a block');
    expect(stderr).toBe(`rocev2: ${path} is damaged at byte ${summary.damage!.offset}: the file ends inside a block\n`);
  });

  it.each([
    [
      'garbage',
      'this is not a capture',
      /cannot decode .*garbage: not a pcapng or pcap file: it begins with 74 68 69 73/,
    ],
    ['empty', '', /cannot decode .*empty: the file is empty/],
  ])('%s exits 1 and says what was found', async (name, content, message) => {
    const { exitCode, stdout, stderr } = await run(['decode', file(name, content)]);
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(message);
  });

  it('a missing file and a directory are told apart', async () => {
    expect((await run(['decode', join(directory, 'none')])).stderr).toMatch(
      /cannot read .*none: there is no such file/,
    );
    expect((await run(['decode', directory])).stderr).toMatch(/it is a directory/);
  });
});
