import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { sweepHere as sweepHereOf } from '../../packages/lab/src/commands/sim/sweep/local-executor.js';
import type { SweepTask } from '../../packages/lab/src/commands/sim/sweep/points.js';
import type {
  RedisSweepOptions,
  sweepOnRedis as sweepOnRedisOf,
} from '../../packages/lab/src/commands/sim/sweep/redis-executor.js';
import type {
  connectRedis as connectRedisOf,
  queueName as queueNameOf,
} from '../../packages/lab/src/commands/sim/sweep/redis-queue.js';
import { sweepTasks } from '../../packages/lab/test/sim-command/sweep-tasks.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { isBuilt, Program, rocev2Starter } from './executable.js';

const BUILT = '../../build/packages/lab/src/commands/sim/sweep';
/** A worker's death is noticed after this; the program says 30 s. */
const LOCK_MS = 1_000;
const server = isBuilt ? await RedisServer.start() : undefined;

// Worker threads run what `npm test` has built.
describe.skipIf(server === undefined)('a sweep on Redis', { timeout: 60_000 }, () => {
  const url = `redis://127.0.0.1:${server?.port}`;
  let sweepHere: typeof sweepHereOf;
  let sweepOnRedis: typeof sweepOnRedisOf;
  let queue: { connectRedis: typeof connectRedisOf; queueName: typeof queueNameOf };
  const rocev2 = rocev2Starter();
  const workers: Program[] = [];

  beforeAll(async () => {
    ({ sweepHere } = await import(`${BUILT}/local-executor.js`));
    ({ sweepOnRedis } = await import(`${BUILT}/redis-executor.js`));
    queue = await import(`${BUILT}/redis-queue.js`);
  });
  afterEach(async () => {
    for (const worker of workers.splice(0)) await stop(worker, 'SIGKILL');
    const redis = await queue.connectRedis(url);
    await redis.flushall();
    redis.disconnect();
  });
  afterAll(async () => server![Symbol.asyncDispose]());

  function startWorker(): Program {
    const worker = Program.fixture('sweep-worker.mjs', url, String(LOCK_MS));
    workers.push(worker);
    return worker;
  }

  async function stop(worker: Program, signal: NodeJS.Signals): Promise<number | string> {
    worker.kill(signal);
    return await worker.ended();
  }

  function sweep(tasks: readonly SweepTask[], options: Partial<RedisSweepOptions> = {}) {
    const said: string[] = [];
    const { signal } = new AbortController();
    const say = (text: string) => void said.push(text);
    return { said, results: sweepOnRedis(tasks, { url, fresh: false, say, signal, onDone() {}, ...options }) };
  }

  it('has the results of a sweep on this machine, and takes them again when it is repeated', async () => {
    startWorker();
    startWorker();
    const tasks = await sweepTasks('seed=1', 'seed=2', 'nic.cc=none');
    const { results } = sweep(tasks);
    const { signal } = new AbortController();
    const here = await sweepHere(tasks, { jobs: 1, signal, onDone() {} });
    const hashes = (await results).map(({ point, result }) => [point, result.traceHash]);
    expect(hashes).toEqual(here.map(({ point, result }) => [point, result.traceHash]));

    for (const worker of workers.splice(0)) await stop(worker, 'SIGINT');
    const again = sweep(tasks);
    expect((await again.results).map(({ point, result }) => [point, result.traceHash])).toEqual(hashes);
    expect(again.said).toEqual(['3 results are there from an earlier sweep (--fresh runs them again)']);
  });

  it('asks workers again for what is to be fresh', async () => {
    const worker = startWorker();
    const tasks = await sweepTasks('seed=1');
    await sweep(tasks).results;
    await sweep(tasks, { fresh: true }).results;
    // The result goes by Redis, the line by a pipe: it may come later.
    await eventually(() => worker.stdout.match(/"seed":1/g)?.length === 2);
  });

  it('loses nothing when a worker is killed: another gets its run', async () => {
    const killed = startWorker();
    const { results } = sweep(await sweepTasks('duration=100ms', 'duration=1ms'));
    const redis = await queue.connectRedis(url);
    await eventually(async () => (await redis.llen(`bull:${queue.queueName()}:active`)) > 0);
    redis.disconnect();
    await stop(killed, 'SIGKILL');
    startWorker();
    expect((await results).map(({ result }) => result.virtualSeconds)).toEqual([0.1, 0.001]);
  });

  it('gets the run of a worker that ends by Ctrl-C done by another at once', async () => {
    const stopped = startWorker();
    const { results } = sweep(await sweepTasks('duration=100ms'));
    const redis = await queue.connectRedis(url);
    await eventually(async () => (await redis.llen(`bull:${queue.queueName()}:active`)) > 0);
    expect(await stop(stopped, 'SIGINT'), stopped.stderr).toBe(0);
    expect(await redis.llen(`bull:${queue.queueName()}:wait`)).toBe(1);
    redis.disconnect();
    startWorker();
    expect(await results).toHaveLength(1);
  });

  it('withdraws what nobody has begun when it is interrupted, and says when nobody is there', async () => {
    const interruption = new AbortController();
    const { results, said } = sweep(await sweepTasks('seed=1', 'seed=2'), { signal: interruption.signal });
    await eventually(() => said.some((text) => text.startsWith('no worker has come')));
    interruption.abort();
    expect(await results).toEqual([]);
    const redis = await queue.connectRedis(url);
    expect(await redis.llen(`bull:${queue.queueName()}:wait`)).toBe(0);
    redis.disconnect();
  });

  it('ends with the first run that fails, and tries it again the next time', async () => {
    startWorker();
    const tasks = await sweepTasks('flows[0].to=h99');
    await expect(sweep(tasks).results).rejects.toThrow('the run with flows[0].to=h99 failed: ');
    await expect(sweep(tasks).results).rejects.toThrow("'h99' is not there");
  });

  it('is two commands', async () => {
    const worker = rocev2('sim', 'worker', '--redis', url, '--jobs', '1');
    await worker.writes('stdout', /ready for 1 runs at once/);
    const sweeping = rocev2(
      'sim',
      'sweep',
      'pfc-n2',
      '--over',
      'seed=1..2',
      '--set',
      'duration=1ms',
      '--set',
      'warmup=0',
      '--executor',
      'redis',
      '--redis',
      url,
      '--json',
    );
    expect(await sweeping.ended(), sweeping.stderr).toBe(0);
    expect(JSON.parse(sweeping.stdout).runs).toHaveLength(2);
    await worker.writes('stdout', /pfc-n2, seed 2/);
    worker.kill('SIGINT');
    expect(await worker.ended()).toBe(0);
  });

  it('says so where no server is', async () => {
    const sweeping = rocev2(
      'sim',
      'sweep',
      'pfc-n2',
      '--over',
      'seed=1',
      '--executor',
      'redis',
      '--redis',
      'redis://:secret@127.0.0.1:1',
    );
    expect(await sweeping.ended()).not.toBe(0);
    expect(sweeping.stderr).toContain('no Redis server for us at redis://:***@127.0.0.1:1: connect ECONNREFUSED');
    expect(sweeping.stderr).not.toContain('secret');
  });
});
