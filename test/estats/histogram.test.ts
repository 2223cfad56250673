import fc from 'fast-check';
import { build } from 'hdr-histogram-js';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { BUCKETS, bucketOf, bucketStartNs, Histogram } from '../../src/verbs/estats/histogram.js';

describe('buckets', () => {
  it('are 832, and one below and one above', () => expect(BUCKETS).toBe(834));

  it('begin at 1.024 us and end at 68.7 s', () => {
    expect(bucketOf(1023.999)).toBe(0);
    expect(bucketOf(1024)).toBe(1);
    expect(bucketOf(2 ** 36 - 1)).toBe(BUCKETS - 2);
    expect(bucketOf(2 ** 36)).toBe(BUCKETS - 1);
    expect(bucketOf(-5)).toBe(0);
    expect(bucketOf(1e300)).toBe(BUCKETS - 1);
  });

  it('hold every time between their ends, and are at most 1/32 wide', () => {
    fc.assert(
      fc.property(fc.double({ min: 1024, max: 2 ** 36 - 1, noNaN: true }), (ns) => {
        const bucket = bucketOf(ns);
        const start = bucketStartNs(bucket);
        const end = bucketStartNs(bucket + 1);
        expect(start).toBeLessThanOrEqual(ns);
        expect(end).toBeGreaterThan(ns);
        expect((end - start) / start).toBeLessThanOrEqual(1 / 32);
      }),
    );
  });
});

function samples(seed: number, count: number): number[] {
  const random = new SeededRandom(seed).stream('samples');
  return Array.from({ length: count }, () => Math.round(2 ** (10 + (random.u32() / 2 ** 32) * 24)));
}

describe('a histogram', () => {
  it('knows quantiles as an independent HdrHistogram does, at most 3.2 % too high', () => {
    const ours = new Histogram();
    const theirs = build({
      lowestDiscernibleValue: 1,
      highestTrackableValue: 2 ** 37,
      numberOfSignificantValueDigits: 4,
    });
    for (const ns of samples(7, 20_000)) {
      ours.record(ns);
      theirs.recordValue(ns);
    }
    for (const q of [0.01, 0.5, 0.9, 0.99, 0.999, 1]) {
      const exact = theirs.getValueAtPercentile(q * 100);
      expect(ours.quantileNs(q) / exact).toBeGreaterThan(0.9998);
      expect(ours.quantileNs(q) / exact).toBeLessThan(1.0325);
    }
    expect(ours.meanNs / theirs.mean).toBeCloseTo(1, 3);
  });

  it('is the same merged from parts as recorded in one', () => {
    const whole = new Histogram();
    const merged = new Histogram();
    for (const seed of [1, 2, 3]) {
      const part = new Histogram();
      for (const ns of samples(seed, 500)) {
        part.record(ns);
        whole.record(ns);
      }
      merged.add(part.toSparse());
    }
    expect(merged.toSparse()).toEqual(whole.toSparse());
    expect(merged.summary()).toEqual(whole.summary());
  });

  it('is zero throughout when empty, and after a reset', () => {
    const histogram = new Histogram();
    const empty = { count: 0, sumNs: 0, minNs: 0, p50Ns: 0, p90Ns: 0, p99Ns: 0, p999Ns: 0, maxNs: 0 };
    expect(histogram.summary()).toEqual(empty);
    histogram.record(5000);
    histogram.reset();
    expect(histogram.summary()).toEqual(empty);
  });

  it('never says more than the largest sample', () => {
    const histogram = new Histogram();
    histogram.record(1_000_001);
    expect(histogram.quantileNs(0.5)).toBe(1_000_001);
    expect(histogram.quantileNs(1)).toBe(1_000_001);
  });

  it('in coarser bars holds as many, in bars that contain them', () => {
    const histogram = new Histogram();
    const samples = [10, 1500, 1501, 2_000_000, 2 ** 40];
    for (const ns of samples) histogram.record(ns);
    for (const buckets of [1, 4, 5]) {
      const bars = histogram.bars(buckets);
      expect(bars.reduce((sum, { count }) => sum + count, 0)).toBe(samples.length);
      for (const ns of samples) expect(bars.some(({ fromNs, toNs }) => fromNs <= ns && ns <= toNs)).toBe(true);
    }
    expect(histogram.bars(4).length).toBeLessThan(samples.length);
  });
});
