import { readFileSync } from 'node:fs';
import type { LadderConnection } from '@rocev2/command/plot';
import { describe, expect, it } from 'vitest';
import { captureState } from '../src/ladder/source.js';
import { connectionName } from '../src/messages/connection-name.js';

const UDP_PORT = 4791;
const GOLDEN = new URL('../../../test/golden/', import.meta.url);

function golden(name: string): readonly LadderConnection[] {
  return captureState(name, readFileSync(new URL(`${name}.pcapng`, GOLDEN)), UDP_PORT).connections;
}

const numbersOf = ({ packets }: LadderConnection, is: (packet: LadderConnection['packets'][number]) => boolean) =>
  packets.filter(is).map(({ number }) => number);

describe('the ladder of a capture of real peers', () => {
  it('joins both directions of a connection and numbers packets from its start, through the wrap of PSNs', () => {
    const connections = golden('loss-req-send-rc-v4');
    expect(connections.map(({ name }) => name)).toEqual(['10.77.0.2 QP 0x29 ↔ 10.77.0.3 QP 0x29']);
    const [{ packets }] = connections;
    expect(packets).toHaveLength(62);
    // Guest 1 sends from PSN fffffa (test/golden/README.md).
    expect(packets[0]).toMatchObject({
      number: 1,
      from: 'a',
      psn: 0xfffffa,
      relativePsn: 0,
      operation: 'RC SEND_FIRST',
    });
    expect(packets[6]).toMatchObject({ psn: 0, relativePsn: 6 });
    expect(packets[18]).toMatchObject({ from: 'b', kind: 'ack', operation: 'ACK', relativePsn: 5 });
  });

  it('shows what every 7th packet lost on the bridge did: a NAK, and everything behind it again', () => {
    const [connection] = golden('loss-req-send-rc-v4');
    const naks = numbersOf(connection, ({ kind }) => kind === 'nak');
    expect(naks[0]).toBe(20);
    // The drop is behind the capture point: each 7th packet of guest 1 is in the file.
    const ofA = connection.packets.filter(({ from }) => from === 'a');
    const lost = ofA.flatMap(({ isLost }, i) => (isLost ? [i + 1] : []));
    expect(lost.length).toBe(naks.length);
    for (const place of lost) expect(place % 7).toBe(0);
    expect(connection.packets[6]).toMatchObject({
      isLost: true,
      isRepeated: false,
      notes: [expect.stringContaining('packet 20')],
    });
    expect(connection.packets[20]).toMatchObject({ number: 21, isRepeated: true, relativePsn: 6, isLost: false });
    expect(numbersOf(connection, ({ isRepeated }) => isRepeated)).toHaveLength(36);
  });

  it('shows READ responses that never came past as missing', () => {
    const [connection] = golden('loss-resp-read-rc-v4');
    const missing = connection.packets.filter(({ number }) => number === null);
    expect(missing.length).toBeGreaterThan(0);
    for (const packet of missing) expect(packet).toMatchObject({ from: 'b', isLost: true, kind: 'data' });
    expect(missing[0].relativePsn).toBe(17);
  });

  it('does not call lost what came while the receiver was not ready, nor anything of a whole run', () => {
    const [notReady] = golden('rnr-nak-rc-v4');
    const asked = notReady.packets.find(({ operation }) => operation.startsWith('RNR'))!;
    expect(asked.kind).toBe('nak');
    expect(notReady.packets.filter(({ psn, isLost }) => psn === asked.psn && isLost)).toEqual([]);
    for (const name of [
      'send-rc-mtu1024-v4',
      'write-rc-mtu1024-v6',
      'read-rc-mtu1024-v4',
      'atomic-rc-v4',
      'pipeline-rc-v4',
    ]) {
      for (const { packets } of golden(name)) {
        expect(packets.filter(({ isLost, isRepeated, kind }) => isLost || isRepeated || kind === 'nak')).toEqual([]);
      }
    }
  });

  it('tells connections between the same hosts apart, and connection management from them', () => {
    expect(golden('cm-ucmatose-v4').map(({ name }) => name)).toEqual([
      'connection management, 10.77.0.2 QP 0x1 ↔ 10.77.0.3 QP 0x1',
      '10.77.0.3 QP 0x39 ↔ 10.77.0.2 QP 0x3b',
      '10.77.0.3 QP 0x3a ↔ 10.77.0.2 QP 0x3c',
    ]);
    expect(golden('nvmeof-rdma-v4')).toHaveLength(3);
  });

  it('has a ladder of one direction where nothing comes back', () => {
    expect(golden('uc-v4').map(({ name, packets }) => [name, packets.length])).toEqual([
      ['10.77.0.2 ↔ 10.77.0.3 QP 0x16', 12],
    ]);
  });

  it('gives no packet a negative number', () => {
    for (const name of [
      'loss-ack-send-rc-v4',
      'loss-atomic-resp-rc-v4',
      'cm-loss-rping-v4',
      'rsocket-rstream-v4',
      'ib_read_bw-v4',
    ]) {
      for (const { packets } of golden(name)) {
        for (const { relativePsn } of packets) expect(relativePsn ?? 0).toBeGreaterThanOrEqual(0);
      }
    }
  });

  it('says what is not shown', () => {
    const bytes = readFileSync(new URL('loss-req-send-rc-v4.pcapng', GOLDEN));
    expect(captureState('x', bytes, 4792)).toMatchObject({
      connections: [],
      remarks: [
        '62 other packets of the file are not to UDP port 4792.',
        'Not shown: 62 packets with a correct ICRC go to UDP port 4791: use --udp-port 4791.',
      ],
    });
    const cut = captureState('x', bytes.subarray(0, bytes.length / 2), UDP_PORT);
    expect(cut.remarks[0]).toMatch(/^The file is damaged at byte \d+/);
    expect(cut.connections[0].packets[20]).toMatchObject({ number: 21, isRepeated: true });
    expect(cut.connections[0].packets.length).toBeLessThan(62);
    expect(() => captureState('x', new Uint8Array(8), UDP_PORT)).toThrow(/not a pcapng or pcap file/);
  });
});

describe('the ladder of a trace', () => {
  const sent = (time: number, psn: number) => ({
    time,
    name: 'roce:packet_sent',
    data: { operation: 'RC RDMA_WRITE_MIDDLE', dest_qpn: 0x22, psn, payload_length: 1024 },
  });
  const acknowledged = (time: number, psn: number, syndrome: string) => ({
    time,
    name: 'roce:packet_received',
    data: { operation: 'RC ACKNOWLEDGE', dest_qpn: 0x11, psn, payload_length: 0, syndrome, msn: 1 },
  });
  const traceOf = (...records: readonly object[]) =>
    captureState(
      'run.jsonl',
      Buffer.from([{ qlog_version: '0.4' }, ...records, ''].map((r) => (r === '' ? '' : JSON.stringify(r))).join('\n')),
      UDP_PORT,
    );

  it('has what the endpoint sent, lost, was asked for and sent again', () => {
    const state = traceOf(
      sent(0, 100),
      sent(0.01, 101),
      {
        time: 0.01,
        name: 'roce:packet_dropped',
        data: { trigger: 'fault_rule', direction: 'sent', dest_qpn: 0x22, psn: 101 },
      },
      sent(0.02, 102),
      acknowledged(0.5, 101, 'NAK PSN_SEQUENCE_ERROR'),
      { time: 0.6, name: 'roce:timeout', data: { count: 1 } },
      sent(0.6, 101),
    );
    expect(state.format).toBe('trace');
    expect(state.connections).toHaveLength(1);
    const [{ name, packets }] = state.connections;
    expect(name).toBe('this endpoint QP 0x11 ↔ its peer QP 0x22');
    expect(packets.map(({ from, relativePsn, isLost, isRepeated }) => [from, relativePsn, isLost, isRepeated])).toEqual(
      [
        ['a', 0, false, false],
        ['a', 1, true, false],
        ['a', 2, false, false],
        ['b', 1, false, false],
        ['a', 1, false, true],
      ],
    );
    expect(packets[1].notes[0]).toBe('A fault rule took it.');
    expect(packets[4].notes[0]).toBe('An acknowledgement timeout came before it.');
    expect(packets[3].sentNs).toBe(500_000);
  });
});

describe('the name of a connection', () => {
  it('says where it goes', () => {
    expect(connectionName('0x11>10.0.0.2/0x22')).toBe('to 10.0.0.2 (QP 0x11 → 0x22)');
    expect(connectionName('0x11>fd00::2/0x22')).toBe('to fd00::2 (QP 0x11 → 0x22)');
    expect(connectionName('0x11')).toBe('QP 0x11');
    expect(connectionName('other')).toBe('other');
  });
});
