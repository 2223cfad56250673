import { describe, expect, it } from 'vitest';
import { audited, broken, GOLDEN, golden } from './golden.js';

describe('captures of Linux Soft-RoCE 6.1', () => {
  it('there are 48', () => expect(GOLDEN).toHaveLength(48));

  it.each(GOLDEN)('%s keeps every rule, and nothing is left in doubt', (name) => {
    const packets = golden(name.replace('.pcapng', ''));
    const report = audited(packets);
    expect(report.findings).toEqual([]);
    expect(report.packets).toMatchObject({ total: packets.length, roce: packets.length, unsound: 0, foreign: 0 });
    expect(report.unmatchedAnswers).toBe(0);
  });

  it('is not taken for broken where packets are missing: any one of them', () => {
    for (const name of ['send-rc-mtu1024-v4', 'read-rc-mtu1024-v6', 'pipeline-rc-v4', 'cm-rping-eth1500-v4']) {
      const packets = golden(name);
      for (let missing = 0; missing < packets.length; missing++) {
        const rest = packets.filter((_packet, i) => i !== missing);
        expect([name, missing, broken(audited(rest))]).toEqual([name, missing, []]);
      }
    }
  });

  it('is not taken for broken when the capture begins late', () => {
    for (const name of ['loss-req-send-rc-v4', 'loss-resp-read-rc-v4', 'nvmeof-rdma-v4', 'rnr-nak-rc-v4']) {
      const packets = golden(name);
      for (let first = 1; first < packets.length; first += 3) {
        expect([name, first, broken(audited(packets.slice(first)))]).toEqual([name, first, []]);
      }
    }
  });

  it('is judged by its headers where the capture cut the packets short', () => {
    for (const name of GOLDEN) {
      const cut = golden(name.replace('.pcapng', '')).map((packet) => ({
        ...packet,
        bytes: packet.bytes.subarray(0, 110),
        originalLength: packet.bytes.length,
      }));
      expect([name, broken(audited(cut))]).toEqual([name, []]);
    }
  });
});
