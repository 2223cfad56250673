import { expect, it } from 'vitest';
import { scenarioPage } from '../../src/commands/sim/page.js';
import { runScenario } from '../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../src/sim/scenario/schema.js';

async function pageOf(change: Partial<ScenarioFile>): Promise<string> {
  const scenario = parseScenario({
    name: 'small',
    title: 'Less than <this>',
    source: 'a & b',
    duration: '10ms',
    topology: { kind: 'star', hosts: 3, rate: '40Gbps' },
    flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2' }],
    ...change,
  });
  return scenarioPage(await runScenario(scenario, { realNowNs: () => 0 }), 'rocev2 sim run small', scenario);
}

it('a report names flows by their ends, and has its source and the whole scenario', async () => {
  const page = await pageOf({ duration: '1ms' });
  for (const text of [
    'Less than &lt;this&gt;',
    'Source: a &amp; b',
    '1: h1&gt;h2',
    'First sent (Gb/s)',
    'Received (Gb/s)',
  ]) {
    expect(page).toContain(text);
  }
  expect(page).toContain('&quot;recovery&quot;: &quot;go-back-n&quot;');
  expect(page).not.toContain('Percent of flows');
  expect(page).not.toContain('Packet memory');
});

it('a report of many flows that end shows how long they took, and of a shared memory what it held', async () => {
  const page = await pageOf({
    switch: { pfc: { priorities: [0] } },
    flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2', each: 30, bytes: '10KB' }],
  });
  for (const text of ['Percent of flows', 'all flows (60)', 'below 100 KB (60)', 'Packet memory']) {
    expect(page).toContain(text);
  }
});

it('a queue whose start towers above the rest has a logarithmic axis, another one has not', async () => {
  const bursts: Partial<ScenarioFile> = {
    sample: '10us',
    flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2', bytes: '1MB' }],
  };
  const ticks = (page: string) => [...page.matchAll(/>(\d+)<\/text>/g)].map(([, label]) => Number(label)).slice(0, 3);
  expect(ticks(await pageOf({ ...bursts, warmup: '1ms' }))).toEqual([1, 10, 100]);
  expect(ticks(await pageOf(bursts))[0]).toBe(0);
});
