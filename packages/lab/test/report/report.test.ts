import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../../cli/test/run-in-process.js';
import { sectionOf } from '../../src/commands/report/report.js';

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
    expect(result.stderr).toMatch(/broken\.json is left out.*\n.*odd\.json is left out/);
    expect(result.stderr).not.toContain('notes.txt');
    const html = await readFile(page, 'utf8');
    expect(html).toContain('<h1>A &amp; B</h1>');
    for (const { title } of sections) expect(html).toContain(title);
    expect(html).toContain('a&lt;b');
    expect(html).toContain('<th>time.p50</th>');
    expect(html).toContain('1.235');
    expect(html.match(/<svg /g)!.length).toBeGreaterThanOrEqual(2);
    expect(html).toMatch(
      /class="verdict bad"><strong>Livelock: the link is busy, and nothing arrives<.*90.00 % of the link/,
    );
    expect(html).not.toMatch(/(src|href)="(?!#)/); // Nothing from elsewhere.
    expect(html).not.toContain('<script');
  });

  it('fails where there is nothing to show', async () => {
    const empty = await mkdtemp(join(folder, 'empty-'));
    expect(await run(['report', empty])).toMatchObject({ exitCode: 1, stdout: '' });
    expect((await run(['report', join(folder, 'nowhere')])).stderr).toMatch(/cannot read .*: there is no such file/);
  });

  it('knows a document by its form, and takes no other for it', () => {
    expect(sectionOf(LIVELOCK)!.title).toBe('Livelock');
    const other = { runs: [{ op: 'write', speed: 3 }] };
    expect(sectionOf(other)!.title).toBe('Measurements');
    for (const nothing of [undefined, null, 'text', [], {}, { rows: [] }, [[1, 2]]])
      expect(sectionOf(nothing)).toBeUndefined();
  });
});

describe('the section of a capture', () => {
  const CAPTURE = 'test/golden/loss-req-send-rc-v4.pcapng';

  it('has the verdict of the audit, and a ladder with the loss and its NAK', async () => {
    const results = await mkdtemp(join(folder, 'captures-'));
    await copyFile(CAPTURE, join(results, 'loss.pcapng'));
    await writeFile(join(results, 'broken.pcap'), 'no capture');
    const { stdout: audited } = await run(['audit', CAPTURE, '--json']);
    await writeFile(join(results, 'audit.json'), audited);
    const { exitCode, stdout, stderr } = await run(['report', results, '--json']);
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/broken\.pcap is left out/);
    const { page, sections } = JSON.parse(stdout) as { page: string; sections: { title: string }[] };
    expect(sections.map(({ title }) => title)).toEqual(['Audit', 'Capture']);
    const html = await readFile(page, 'utf8');
    expect(html.match(/class="verdict good"><strong>No rule is broken</g)).toHaveLength(2);
    expect(html.match(/class="rung [^"]*dropped/g)!.length).toBeGreaterThan(0);
    expect(html.match(/class="rung nak/g)!.length).toBeGreaterThan(0);
    expect(html).not.toContain('<script');
  });

  it('is red, and names the rule, where one is broken', async () => {
    const results = await mkdtemp(join(folder, 'broken-'));
    const bytes = await readFile(CAPTURE);
    const at = bytes.indexOf(Buffer.from('12b7', 'hex')) + 6; // Behind the UDP destination port: the BTH begins.
    bytes[at + 2] ^= 1;
    await writeFile(join(results, 'changed.pcapng'), bytes);
    const { stdout } = await run(['report', results, '--json']);
    const html = await readFile((JSON.parse(stdout) as { page: string }).page, 'utf8');
    expect(html).toMatch(/class="verdict bad"><strong>Rules that must be kept are broken: 11</);
  });
});

describe('the section of a sweep', () => {
  const RESULT = {
    scenario: 's',
    title: 'Two flows',
    seed: 1,
    traceHash: 'abc',
    flows: [],
    queues: [],
    buffers: [],
    assertions: [],
    series: { timeNs: [1], queueBytes: {}, rateBps: [], receivedBps: {}, cnps: [0], pauseFrames: [0] },
  };
  const COMPLETIONS = { count: 0, unfinished: 0, p50Ns: null, p90Ns: null, p99Ns: null };
  const runOf = (point: readonly string[], goodputBps: number) => ({
    point,
    result: {
      ...RESULT,
      summary: {
        goodputBps,
        jain: 1,
        queueMeanBytes: 2000,
        queueP99Bytes: 9000,
        cnps: 0,
        pauseFrames: 0,
        droppedPackets: 0,
        completions: COMPLETIONS,
        smallCompletions: COMPLETIONS,
      },
    },
  });

  it('has a row for each run with the swept values, and plots over numbers with the mean of seeds', () => {
    const runs = [1, 2].flatMap((seed) => [
      runOf(['nic.cc=dcqcn', 'delay=2us', `seed=${seed}`], seed * 1e9),
      runOf(['nic.cc=dcqcn', 'delay=10us', `seed=${seed}`], seed * 2e9),
      runOf(['nic.cc=timely', 'delay=2us', `seed=${seed}`], seed * 3e9),
      runOf(['nic.cc=timely', 'delay=10us', `seed=${seed}`], seed * 4e9),
    ]);
    const { title, body, measures } = sectionOf({ runs })!;
    expect(title).toBe('Sweep of nic.cc and delay and seed: Two flows');
    const [plot, table] = body;
    for (const text of ['delay (us)', 'nic.cc=timely', 'mean of all seeds', 'Goodput (Gb/s)'])
      expect(plot).toContain(text);
    expect(plot).not.toContain('Pause frames');
    expect(table.match(/<tr>/g)).toHaveLength(1 + runs.length);
    expect(table).toContain('<td>timely</td><td>10us</td><td>2</td><td>8.00 Gb/s</td>');
    expect(measures[3]).toMatchObject({ name: 'nic.cc=timely, delay=10us, seed=1: goodput', value: 4e9 });
  });

  it('has bars where the values are names, and takes no list of other runs for a sweep', () => {
    const { body } = sectionOf({ runs: [runOf(['nic.cc=dcqcn'], 1e9), runOf(['nic.cc=timely'], 2e9)] })!;
    expect(body[0]).toContain('<strong>timely</strong>');
    expect(sectionOf({ runs: [{ point: ['a=1'], result: 3 }] })?.title).not.toMatch(/Sweep/);
  });
});

const HEAD = {
  schema: 'livelock',
  schemaVersion: 1,
  toolVersion: '9.8.7',
  command: 'rocev2 livelock --drop "a<b" --json',
  host: { cores: 2, cpu: 'A Processor', node: 'v20.1.2', platform: 'linux', arch: 'x64' },
  start: '2026-01-02T03:04:05.678Z',
  end: '2026-01-02T03:04:09.000Z',
};

/** A folder with one document a file, and the page that `rocev2 report` makes of it. */
async function pageOf(files: Record<string, unknown>, ...args: readonly string[]): Promise<string> {
  const results = await mkdtemp(join(folder, 'results-'));
  for (const [name, document] of Object.entries(files)) await writeFile(join(results, name), JSON.stringify(document));
  const { exitCode, stdout } = await run(['report', results, '--json', ...args]);
  expect(exitCode).toBe(0);
  return readFile((JSON.parse(stdout) as { page: string }).page, 'utf8');
}

describe('the page of a report', () => {
  it('says of each document which command made it, when, by which versions, on which machine', async () => {
    const page = await pageOf({
      'livelock.json': { ...HEAD, ...LIVELOCK },
      'bench.json': { ...HEAD, rows: [{ n: 1 }] },
    });
    expect(page.match(/<code>rocev2 livelock --drop &quot;a&lt;b&quot; --json<\/code>/g)).toHaveLength(2);
    expect(page).toContain('2026-01-02 03:04:05 UTC');
    expect(page).toContain('rocev2 9.8.7, Node.js 20.1.2');
    expect(page).toContain('2 cores, A Processor, linux, x64');
    expect(page).not.toContain('schemaVersion');
    expect(page).toMatch(/written \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC by rocev2 \d/);
  });

  it('says nothing of a document that says nothing of itself, and takes no other value for a head', async () => {
    const page = await pageOf({
      'a.json': LIVELOCK,
      'b.json': { command: 7, host: 'here', start: [], rows: [{ n: 1 }] },
    });
    expect(page.match(/class="origin"/g)).toHaveLength(1); // the page's own
  });

  it('has the name of a run once as a heading, and none of its figures repeats it', async () => {
    const { stdout } = await run(['sim', 'run', 'livelock-go-back-n', '--set', 'duration=1ms', '--json']);
    const page = await pageOf({ 'sim.json': JSON.parse(stdout) });
    const { title } = JSON.parse(stdout) as { title: string };
    expect(page.split(`>${title}<`)).toHaveLength(3); // in the list of contents and as heading
    expect(page).toContain('>Queues, rates and signals over time</text>');
  });
});

describe('a comparison of two runs', () => {
  const runWith = (change: object) => ({ ...HEAD, runs: [{ ...LIVELOCK.runs[0], goodputBps: 8e8, ...change }] });

  it('sets numbers of the same name side by side with their ratio', async () => {
    const base = await mkdtemp(join(folder, 'base-'));
    await writeFile(join(base, 'a.json'), JSON.stringify(runWith({ goodputBps: 4e8 })));
    await writeFile(join(base, 'old.json'), JSON.stringify(LIVELOCK));
    const page = await pageOf({ 'a.json': runWith({}), 'new.json': LIVELOCK }, '--compare', base);
    expect(page).toContain('<td>WRITE go-back-0: goodput</td><td>400 Mb/s</td><td>800 Mb/s</td><td>2</td>');
    expect(page).toContain('<td>WRITE go-back-0: link use</td><td>90.00 %</td><td>90.00 %</td><td>1</td>');
    expect(page).toContain('new.json is in this run only.');
    expect(page).toContain('old.json is in the base only.');
    expect(page).not.toContain('The runs differ.');
  });

  it('says where command, versions or machine differ', async () => {
    const base = await mkdtemp(join(folder, 'base-'));
    await writeFile(join(base, 'a.json'), JSON.stringify({ ...runWith({}), host: { ...HEAD.host, cores: 64 } }));
    const page = await pageOf({ 'a.json': runWith({}) }, '--compare', base);
    expect(page).toContain('The runs differ.<br>machine: 64 cores, A Processor, linux, x64 / 2 cores, A Processor');
    expect(page).not.toContain('versions:');
  });

  it('has no ratio to nothing, and fails where there is nothing to compare with', async () => {
    const base = await mkdtemp(join(folder, 'base-'));
    expect(await run(['report', base, '--compare', join(folder, 'nowhere')])).toMatchObject({ exitCode: 1 });
    await writeFile(join(base, 'a.json'), JSON.stringify(runWith({ goodputBps: 0 })));
    const page = await pageOf({ 'a.json': runWith({}) }, '--compare', base);
    expect(page).toContain('goodput</td><td>0 b/s</td><td>800 Mb/s</td><td></td>');
    expect(await run(['report', base, '--compare', join(folder, 'nowhere')])).toMatchObject({ exitCode: 1 });
  });

  it('knows records of benches by their texts, else by their place', () => {
    const section = sectionOf({ rows: [{ name: 'a', p: { x: 1 } }, { name: 'a', p: { x: 2 } }, { y: 3 }] })!;
    expect(section.measures.map(({ name, value }) => [name, value])).toEqual([
      ['rows a: p.x', 1],
      ['rows a 2: p.x', 2],
      ['rows 3: y', 3],
    ]);
  });
});
