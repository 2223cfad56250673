import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AttachedState } from '../../packages/dashboard/src/messages/attached.js';
import type { LabState } from '../../packages/dashboard/src/messages/lab-messages.js';
import type { RecordingState } from '../../packages/dashboard/src/messages/recording-messages.js';
import { documentOf } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { childrenOf, isAlive, isBuilt, isLinux, Program } from './executable.js';

async function start(...args: readonly string[]): Promise<{ dashboard: Program; url: string }> {
  const dashboard = Program.rocev2('dashboard', '--json', '--bind', '127.58.5.1', ...args);
  const [line] = await dashboard.writes('stdout', /^\{.*\}\n/);
  return { dashboard, url: String(documentOf('dashboard', line)['url']) };
}

const document = async <T>(url: string): Promise<T> => (await (await fetch(url)).json()) as T;

describe.skipIf(!isBuilt || !isLinux)('rocev2 dashboard', () => {
  it('serves the page and the state of a lab at work, and leaves no process behind', async () => {
    const { dashboard, url } = await start();
    expect(url).toMatch(/^http:\/\/127\.58\.5\.1:\d+\/$/);
    expect(await (await fetch(url)).text()).toContain('<title>rocev2 dashboard</title>');
    for (const path of ['page/main.js', 'page/style.css']) {
      expect((await fetch(url + path)).status).toBe(200);
    }
    let state: LabState;
    do state = await document<LabState>(`${url}state`);
    while ((state.samples.at(-1)?.totals.packetsDropped ?? 0) === 0);
    expect(state.samples.at(-1)).toMatchObject({ settings: { scheme: 'go-back-0' }, totals: { messages: 0 } });
    const children = childrenOf(dashboard.process.pid!);
    expect(children).toHaveLength(3);
    dashboard.kill('SIGINT');
    expect(await dashboard.ended()).toBe(0);
    await eventually(() => !children.some(isAlive));
  });

  it('ends, and says why, when a process of its lab dies', async () => {
    const { dashboard } = await start();
    process.kill(childrenOf(dashboard.process.pid!)[0], 'SIGKILL');
    expect(await dashboard.ended()).toBe(1);
    expect(dashboard.stderr).toMatch(/the process of (the switch|endpoint a|endpoint b) was ended by SIGKILL/);
  });

  it('shows a result that was kept, and names what is wrong with one that is none', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rocev2-dashboard-'));
    const sim = Program.rocev2('sim', 'run', 'livelock-go-back-n', '--set', 'duration=1ms', '--json');
    await sim.ended();
    const kept = join(folder, 'kept.json');
    await writeFile(kept, sim.stdout);
    const { dashboard, url } = await start('--sim', kept);
    const state = await document<RecordingState>(`${url}state`);
    expect(state.kind).toBe('recording');
    expect(state.result).toEqual(JSON.parse(sim.stdout));
    dashboard.kill('SIGINT');
    expect(await dashboard.ended()).toBe(0);

    await writeFile(kept, JSON.stringify({ ...state.result, series: { timeNs: [] } }));
    const refused = Program.rocev2('dashboard', '--sim', kept);
    expect(await refused.ended()).toBe(1);
    expect(refused.stderr).toMatch(/kept\.json is not a result of 'rocev2 sim run --json': series\./);
    await rm(folder, { recursive: true });
  });

  it('says when it cannot serve on an address', async () => {
    // An address for documentation (RFC 5737): no machine has it.
    const program = Program.rocev2('dashboard', '--bind', '192.0.2.1', '--sim', 'livelock-go-back-n');
    expect(await program.ended()).toBe(1);
    expect(program.stderr).toContain('cannot listen on 192.0.2.1');
  });

  it('follows a switch that has --estats, and ends with an error that names the choice when asked for two things', async () => {
    const live = Program.rocev2('switch', '--port', 'a=127.61.6.1:5001', '--port', 'b=127.61.6.1:5002', '--estats');
    await live.writes('stderr', /Ctrl-C/);
    const pid = String(live.process.pid);
    const { dashboard, url } = await start('--attach', pid);
    expect(new URL(url).pathname).toMatch(/^\/[0-9a-f]{32}\/$/);
    let state: AttachedState;
    do state = await document<AttachedState>(`${url}state`);
    while ((state.programs[0]?.samples.length ?? 0) === 0);
    expect(state).toMatchObject({
      kind: 'attached',
      which: [pid],
      programs: [{ kind: 'switch', address: '127.61.6.1' }],
    });

    const top = Program.rocev2('estats', 'top', '-e', pid);
    expect(await top.ended()).toBe(3);
    expect(top.stderr).toContain(`switch ${pid} on 127.61.6.1`);
    for (const program of [live, dashboard]) {
      program.kill('SIGINT');
      expect(await program.ended()).toBe(0);
    }
    const both = Program.rocev2('dashboard', '--attach', '--sim', 'dcqcn-n2-4us');
    expect(await both.ended()).toBe(2);
  });
});
