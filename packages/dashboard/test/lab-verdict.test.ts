import { formatCounted } from '@rocev2/command/plot';
import { describe, expect, it } from 'vitest';
import type { LabSample } from '../src/messages/lab-messages.js';
import { labVerdict } from '../src/page/lab-verdict.js';

const PLAN = {
  messageBytes: 1024 * 1024,
  mtu: 1024,
  choices: { schemeSummaries: { 'of-my-own': 'all is sent twice' } },
};

function sample(settings: Partial<LabSample['settings']>, change: Partial<LabSample> = {}): LabSample {
  return {
    number: 1,
    timeNs: 1e9,
    settings: { op: 'write', scheme: 'go-back-0', loss: 'ip-id-lsb=0xff', link: 'fast', cc: 'none', ...settings },
    goodputBps: 0,
    linkBps: 100e6,
    retransmittedPerSecond: 100e6 / 8 / 1024 / 2,
    droppedPerSecond: 40,
    queueBytes: 0,
    queuePairs: [{ qpn: 17, goodputBps: 0, rateBps: null, alpha: null }],
    ports: [],
    latency: { count: 0, p50Ns: 0, p99Ns: 0, maxNs: 0, buckets: [] },
    totals: {
      messages: 0,
      packetsSent: 0,
      packetsDropped: 0,
      packetsRetransmitted: 0,
      naks: 0,
      timeouts: 0,
      marks: 0,
      cnps: 0,
      pauses: 0,
    },
    ...change,
  };
}

describe('what the page says of the lab', () => {
  it('says why go-back-0 delivers nothing: how long a message is, how often a packet is lost, what is repeated', () => {
    const { tone, title, text } = labVerdict(PLAN, [sample({})]);
    expect(tone).toBe('bad');
    expect(title).toContain('Livelock');
    expect(text).toContain('A message is 1024 packets');
    expect(text).toContain('one packet in 256');
    expect(text).toContain('Of the 100 Mb/s that A sends, 50.0 % was sent before.');
  });

  it('gives the odds where packets are lost at random', () => {
    // 0.999^1024 = 0.359; 0.99^1024 = 1 in 29,500.
    expect(labVerdict(PLAN, [sample({ loss: 'random=0.001' })]).text).toContain('one message in 3 gets through');
    expect(labVerdict(PLAN, [sample({ loss: 'random=0.01' })]).text).toContain('one message in 29.5 k gets through');
  });

  it('does not speak of a livelock where messages arrive, where nothing is lost, or where another scheme repairs', () => {
    const others = [
      sample({}, { goodputBps: 50e6 }),
      sample({ loss: 'none' }),
      sample({ scheme: 'go-back-n' }),
      sample({}, { linkBps: 0 }),
    ];
    for (const other of others) {
      const { tone, title } = labVerdict(PLAN, [other]);
      expect(tone).not.toBe('bad');
      expect(title).not.toContain('Livelock');
    }
  });

  it('says how losses are repaired, and how much of the link is useful', () => {
    expect(labVerdict(PLAN, [sample({ scheme: 'of-my-own' }, { goodputBps: 80e6 })]).text).toBe(
      'Recovery by of-my-own (all is sent twice). 80.0 % of what A sends is useful.',
    );
  });

  it.each([
    [0.8, 'good', 'Messages arrive, and losses are repaired'],
    [0.5, 'fair', 'Messages arrive, but part of the link is wasted'],
    [0.08, 'bad', 'Few messages arrive: most of the link is wasted'],
  ] as const)('rates a useful share of %d as %s, with loss and without', (share, tone, title) => {
    const goodputBps = share * 100e6;
    const shown = labVerdict(PLAN, [sample({ scheme: 'of-my-own' }, { goodputBps })]);
    expect(shown).toMatchObject({ tone, title });
    expect(labVerdict(PLAN, [sample({ loss: 'none' }, { goodputBps })]).tone).toBe(tone);
  });

  it('rates over several samples of the same settings, since messages complete seldom', () => {
    const counted = (settings: Partial<LabSample['settings']>, messages: number, packetsSent: number, goodputBps = 0) =>
      sample(settings, { goodputBps, totals: { ...sample({}).totals, messages, packetsSent } });
    const settings = { scheme: 'of-my-own' };
    const before = counted({}, 0, 0);
    const run = [
      before,
      counted(settings, 10, 100_000),
      counted(settings, 11, 101_000),
      counted(settings, 12, 102_048),
    ];
    expect(labVerdict(PLAN, run)).toMatchObject({ tone: 'good', text: expect.stringContaining('100 % of what') });
  });
});

describe('counts with their noun', () => {
  it('have the plural except for one', () => {
    expect([0, 1, 2, 2345].map((count) => formatCounted(count, 'packet'))).toEqual([
      '0 packets',
      '1 packet',
      '2 packets',
      '2.35 k packets',
    ]);
    expect(formatCounted(1, 'packet', '/s')).toBe('1 packet/s');
  });
});
