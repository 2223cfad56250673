import { describe, expect, it } from 'vitest';
import { barRows } from '../../src/plot/bars.js';

function rows(values: readonly number[], max: number): string {
  return barRows(
    values.map((value, i) => ({ label: `<${i}>`, bars: [{ value, max, color: '--hue1', text: `${value} &` }] })),
  );
}

const widths = (markup: string) => [...markup.matchAll(/width:([\d.]+)%/g)].map(([, width]) => Number(width));

describe('bars', () => {
  it('are as long as their values, and no longer than the track', () => {
    expect(widths(rows([4, 2, 0, 9], 4))).toEqual([100, 50, 0, 100]);
    expect(widths(rows([0, 0], 0))).toEqual([0, 0]);
  });

  it('have escaped labels and values', () => {
    expect(rows([1], 1)).toContain('<strong>&lt;0&gt;</strong>');
    expect(rows([1], 1)).toContain('1 &amp;');
  });
});
