import { describe, expect, it } from 'vitest';
import { type ChartPanel, renderLineChart } from '../../src/plot/line-chart.js';

function chart(panel: ChartPanel, x = [0, 1, 2]): string {
  return renderLineChart({ title: 'A < B & "C"', subtitle: '', xLabel: 'Time (ms)', x, panels: [panel] });
}

/** The points of the first line, as [x, y] pairs. */
function points(svg: string): number[][] {
  const [, text] = /points="([^"]*)"/.exec(svg)!;
  return text.split(' ').map((pair) => pair.split(',').map(Number));
}

describe('renderLineChart', () => {
  it('draws larger values higher and later ones to the right', () => {
    const [first, second, third] = points(chart({ yLabel: 'y', series: [{ name: 's', values: [0, 10, 5] }] }));
    expect(first[0]).toBeLessThan(second[0]);
    expect(second[1]).toBeLessThan(third[1]);
    expect(third[1]).toBeLessThan(first[1]);
  });

  it('escapes text', () => {
    const svg = chart({ yLabel: 'y', series: [{ name: '<s>', values: [0, 1, 2] }] });
    expect(svg).toContain('A &lt; B &amp; &quot;C&quot;');
    expect(svg).toContain('&lt;s&gt;');
  });

  it('labels a linear axis with round numbers', () => {
    const svg = chart({ yLabel: 'y', series: [{ name: 's', values: [0, 0.3, 0.97] }] });
    for (const label of ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']) expect(svg).toContain(`>${label}</text>`);
  });

  it('on a logarithmic axis gives every decade the same height and draws what lies below it on the axis', () => {
    const series = [{ name: 's', values: [0, 1, 10, 100, 1000] }];
    const ys = points(chart({ yLabel: 'y', series, logFrom: 1 }, [0, 1, 2, 3, 4])).map(([, y]) => y);
    expect(chart({ yLabel: 'Queue (KB)', series, logFrom: 1 }, [0, 1, 2, 3, 4])).toContain('>Queue (KB), logarithmic<');
    expect(chart({ yLabel: 'Queue (KB)', series }, [0, 1, 2, 3, 4])).toContain('>Queue (KB)<');
    expect(ys[0]).toBe(ys[1]);
    expect(ys[1] - ys[2]).toBeCloseTo(ys[2] - ys[3], 0);
    expect(ys[2] - ys[3]).toBeCloseTo(ys[3] - ys[4], 0);
  });

  it.each([
    ['constant', [5, 5, 5]],
    ['zero', [0, 0, 0]],
    ['negative', [-1, -2, -3]],
  ])('draws %s values on an axis that holds them', (_name, values) => {
    for (const logFrom of [undefined, 1]) {
      const svg = chart({ yLabel: 'y', series: [{ name: 's', values }], ...(logFrom && { logFrom }) });
      expect(points(svg).flat().every(Number.isFinite)).toBe(true);
      expect(svg).not.toContain('NaN');
    }
  });

  it('leaves a gap where a value is missing, and no error bar', () => {
    const series = [{ name: 's', values: [8, 9, null, 7], errors: [1, 1, 0, 1] }];
    const svg = chart({ yLabel: 'y', series }, [0, 1, 2, 3]);
    const lines = [...svg.matchAll(/<polyline[^>]* points="([^"]*)"/g)].map(([, text]) => text.split(' ').length);
    expect(lines).toEqual([2, 1]);
    expect(svg.match(/<circle/g)).toHaveLength(3);
    const missing = chart({ yLabel: 'y', series: [{ name: 's', values: [null, null, null], errors: [0, 0, 0] }] });
    expect(missing).not.toMatch(/NaN|Infinity|<polyline/);
  });

  it('breaks a long legend into rows and makes room for them', () => {
    const series = Array.from({ length: 24 }, (_, i) => ({ name: `a rather long name ${i}`, values: [0, 1, 2] }));
    const height = (svg: string): number => Number(/height="(\d+)" role/.exec(svg)![1]);
    const many = chart({ yLabel: 'y', series });
    expect(height(many)).toBeGreaterThan(height(chart({ yLabel: 'y', series: series.slice(0, 1) })));
    for (const { name } of series) expect(many).toContain(name);
  });
});
