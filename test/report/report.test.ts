import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sectionOf } from '../../src/cli/report/report.js';
import { renderBarChart } from '../../src/plot/bar-chart.js';
import { run } from '../cli/run-in-process.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-report-'));
});
afterAll(() => rm(folder, { recursive: true }));

const LIVELOCK = {
  runs: [
    {
      op: 'write',
      scheme: 'go-back-0',
      lossRule: 'ip-id-lsb=0xff',
      messagesCompleted: 0,
      goodputBps: 0,
      packetsSent: 1000,
      packetsDropped: 4,
      packetsRetransmitted: 990,
      linkUtilization: 0.9,
      efficiency: 0,
      closedForm: null,
    },
  ],
  references: [],
};

describe('rocev2 report', () => {
  it('shows each kind of document in a page that stands alone', async () => {
    await writeFile(join(folder, 'livelock.json'), JSON.stringify(LIVELOCK));
    for (const [file, args] of [
      ['fluid.json', ['fluid', 'dcqcn', '--duration', '5ms', '--json']],
      ['sim.json', ['sim', 'run', 'livelock-go-back-n', '--set', 'duration=1ms', '--json']],
    ] as const) {
      const { stdout } = await run(args);
      await writeFile(join(folder, file), stdout);
    }
    await writeFile(
      join(folder, 'bench.json'),
      JSON.stringify({ node: 'v20', rows: [{ name: 'a<b', time: { p50: 1.23456 } }] }),
    );
    await writeFile(join(folder, 'odd.json'), '3');
    await writeFile(join(folder, 'broken.json'), '{');
    await writeFile(join(folder, 'notes.txt'), 'not JSON, and not asked');
    const result = await run(['report', folder, '--title', 'A & B', '--json']);
    expect(result.exitCode).toBe(0);
    const { page, sections } = JSON.parse(result.stdout) as {
      page: string;
      sections: Array<{ file: string; title: string }>;
    };
    expect(sections.map(({ file }) => file)).toEqual(['bench.json', 'fluid.json', 'livelock.json', 'sim.json']);
    expect(result.stderr).toMatch(/broken\.json left out.*\n.*odd\.json left out/);
    expect(result.stderr).not.toContain('notes.txt');
    const html = await readFile(page, 'utf8');
    expect(html).toContain('<h1>A &amp; B</h1>');
    for (const { title } of sections) expect(html).toContain(title);
    expect(html).toContain('a&lt;b');
    expect(html).toContain('<th>time.p50</th>');
    expect(html).toContain('1.235');
    expect(html.match(/<svg /g)!.length).toBeGreaterThanOrEqual(4);
    expect(html).not.toMatch(/(src|href)="(?!#)/); // Nothing from elsewhere.
    expect(html).not.toContain('<script');
  });

  it('fails where there is nothing to show', async () => {
    const empty = await mkdtemp(join(folder, 'empty-'));
    expect(await run(['report', empty])).toMatchObject({ exitCode: 1, stdout: '' });
    expect((await run(['report', join(folder, 'nowhere')])).stderr).toMatch(/cannot read .*ENOENT/);
  });

  it('knows a document by its form, and takes no other for it', () => {
    expect(sectionOf(JSON.stringify(LIVELOCK))!.title).toBe('Livelock');
    const other = { runs: [{ op: 'write', speed: 3 }] };
    expect(sectionOf(JSON.stringify(other))!.title).toBe('Measurements');
    for (const nothing of ['null', '"text"', '[]', '{}', '{"rows":[]}', '[[1,2]]'])
      expect(sectionOf(nothing)).toBeUndefined();
  });
});

describe('a bar chart', () => {
  const widths = (svg: string) =>
    [...svg.matchAll(/class="fill\d+" [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
  const chart = (values: readonly number[]) =>
    renderBarChart({
      title: 'T',
      subtitle: '',
      bars: values.map((value, i) => ({ label: `<${i}>`, value, group: i })),
      format: (value) => `${value} &`,
    });

  it('draws bars in proportion, and what is nothing as nothing', () => {
    const [a, b, c] = widths(chart([4, 2, 0]));
    expect(a).toBe(2 * b);
    expect(c).toBe(0);
    expect(widths(chart([0, 0]))).toEqual([0, 0]);
  });

  it('escapes labels and values', () => {
    expect(chart([1])).toContain('&lt;0&gt;');
    expect(chart([1])).toContain('1 &amp;');
  });
});
