import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { defineDocument } from '../../command/src/document.js';
import type { CliEnvironment } from '../../command/src/exit.js';
import { Output, visibleWidth } from '../../command/src/output.js';

function outputTo(isTTY: boolean, json: boolean, env: CliEnvironment = {}) {
  const texts = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof texts) =>
    Object.assign(
      new Writable({
        write(chunk, _encoding, done) {
          texts[name] += chunk.toString();
          done();
        },
      }),
      { isTTY },
    );
  const io = {
    args: ['bw', 'write', 'a b'],
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    env,
    interrupted: new AbortController().signal,
  };
  return { output: new Output(io, json), texts };
}

const COLUMNS = [
  { title: 'op', align: 'left' },
  { title: 'Gb/s', align: 'right' },
] as const;

describe('output', () => {
  it('a table is plain aligned text when nobody looks', () => {
    const { output, texts } = outputTo(false, false);
    output.table(COLUMNS, [
      ['write', 12.5],
      ['atomic', 3],
    ]);
    expect(texts.stdout).toBe('op      Gb/s\n------------\nwrite   12.5\natomic     3\n');
  });

  it('a growing table prints each row at once', () => {
    const { output, texts } = outputTo(false, false);
    const row = output.growingTable(COLUMNS, 6);
    row(['write', 12.5]);
    expect(texts.stdout).toBe('op        Gb/s\n--------------\nwrite     12.5\n');
    row(['atomic', 3]);
    expect(texts.stdout.split('\n')[3]).toBe('atomic       3');
  });

  it.each([
    [true, {}, true],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [true, { TERM: 'dumb' }, false],
    [false, {}, false],
    [false, { FORCE_COLOR: '1' }, true],
  ])('terminal %s with %j: colour %s, and the same columns', (isTTY, env, colored) => {
    const { output, texts } = outputTo(isTTY, false, env);
    output.table(COLUMNS, [['write', 12.5]]);
    expect(texts.stdout.includes('\u001b[')).toBe(colored);
    expect(texts.stdout.trimEnd().split('\n').map(visibleWidth)).toEqual([11, 11, 11]);
  });

  it('--json leaves nothing on stdout but the document', () => {
    const { output, texts } = outputTo(true, true);
    output.line('for people');
    output.table(COLUMNS, [['write', 1]]);
    output.note('a diagnostic');
    output.document(defineDocument<{ url: string }>('dashboard'), { url: 'http://127.0.0.1/' });
    expect(JSON.parse(texts.stdout)).toMatchObject({ schema: 'dashboard', url: 'http://127.0.0.1/' });
    expect(texts.stderr).toBe('a diagnostic\n');
  });

  it('progress is silent unless stderr is a terminal', () => {
    const { output, texts } = outputTo(false, false);
    const progress = output.progress(10);
    progress.update(5, 'half');
    progress.stop();
    expect(texts).toEqual({ stdout: '', stderr: '' });
  });

  it.each([true, false])(
    'with --json %s, a terminal shows the time of work without a known end on stderr alone',
    async (json) => {
      const { output, texts } = outputTo(true, json);
      expect(await output.during('starting the lab', Promise.resolve('started'))).toBe('started');
      expect(texts.stdout).toBe('');
      expect(texts.stderr).toContain('starting the lab: 0s');
    },
  );

  it('work that fails takes its line with it, and a pipe shows none', async () => {
    const { output, texts } = outputTo(false, false);
    await expect(output.during('starting', Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(texts).toEqual({ stdout: '', stderr: '' });
  });
});

it('notes of a server that is ready are lines of a log, with time and level', () => {
  const { output, texts } = outputTo(false, true);
  output.note('listening');
  output.ready();
  output.note('a client has connected');
  output.warn('no space is left');
  const [first, ready, ...log] = texts.stderr.trimEnd().split('\n');
  expect([first, ready]).toEqual(['listening', 'Ctrl-C ends it']);
  expect(log).toEqual([
    expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info a client has connected$/),
    expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning no space is left$/),
  ]);
});
