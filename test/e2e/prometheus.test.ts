/** `GET /metrics` of running endpoints, checked by Prometheus' own tool. */

import { describe, expect, it } from 'vitest';
import { isBuilt, rocev2Starter } from './executable.js';
import { hasPromtool, promtoolComplaints } from './second-opinions.js';
import { metricsOf, underLoad } from './watched.js';

const SERVER = '127.65.3.1';
const CLIENT = '127.65.3.2';
const HTTP_PORT = 9465;

const start = rocev2Starter();

/** Both ends of a transfer in full flow: one that sends and loses packets, one that answers. */
async function metricsUnderLoad(): Promise<string[]> {
  const server = start('bw', 'write', '--bind', SERVER, '-p', '26190', '--estats-http', `${SERVER}:${HTTP_PORT}`);
  await server.writes('stderr', /waiting for/);
  const loss = ['--loss', 'random=0.01', '--cc', 'dcqcn', '--rate', '1Gbps'];
  start(
    'bw',
    'write',
    SERVER,
    '--bind',
    CLIENT,
    '-p',
    '26190',
    '-D',
    '60s',
    '--estats-http',
    `${CLIENT}:${HTTP_PORT}`,
    ...loss,
  );
  await underLoad(`${CLIENT}:${HTTP_PORT}`);
  return Promise.all([SERVER, CLIENT].map((address) => metricsOf(`${address}:${HTTP_PORT}`)));
}

const why = hasPromtool ? '' : ' (skipped: no promtool; it is in Debian’s package prometheus)';

describe.runIf(isBuilt && hasPromtool)(`metrics in Prometheus${why}`, () => {
  it('are what promtool accepts, at both ends of a transfer', async () => {
    const [server, client] = await metricsUnderLoad();
    expect(promtoolComplaints(server)).toBe('');
    expect(promtoolComplaints(client)).toBe('');
    expect(client).toMatch(/^# TYPE roce_op_latency_seconds histogram$/m);
  });

  it('would not be accepted with a counter that is not named as one, or a line that is no metric', () => {
    expect(promtoolComplaints('# HELP sent x\n# TYPE sent counter\nsent 1\n')).toMatch(/_total/);
    expect(promtoolComplaints('sent{ 1\n')).not.toBe('');
  });
});
