// @ts-check
/** A pair of processes, one measurement between them, and what is kept of it. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { jsonLines } from './lines.js';

const CHILD = fileURLToPath(new URL('child.js', import.meta.url));
const MIB = 1024 * 1024;
/** The longest measurement takes a tenth of it on two busy cores. */
const LIMIT_SECONDS = 120;

/** One end. What it says of its failure, or that it ended too early, is thrown. @param {'client' | 'server'} role @param {any} run @param {object} options */
function end(role, { transport, measure, crc }, options) {
  const child = spawn(process.execPath, [CHILD, role, transport, measure, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...(crc !== undefined && { ROCEV2_CRC32: crc, ROCEV2_SHM_COPY: 'javascript' }) },
  });
  child.stdin.on('error', () => {}); // It has ended; what it said before tells why.
  const lines = jsonLines(child.stdout, child.stdin);
  const ended = once(child, 'exit');
  const said = async () => {
    const line = await lines.next().catch((error) => {
      throw new Error(`the ${role}: ${error.message}`);
    });
    if (line.failed !== undefined) throw new Error(`the ${role}: ${line.failed}`);
    return line;
  };
  return { said, say: lines.say, ended, kill: () => child.kill('SIGKILL') };
}

/** Rejects when the time is over. @param {number} seconds */
function limit(seconds) {
  /** @type {NodeJS.Timeout} */
  let timer;
  /** @type {Promise<never>} */
  const over = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result within ${seconds} s`)), seconds * 1000);
  });
  return { over, clear: () => clearTimeout(timer) };
}

/**
 * One measurement of one competitor. Throws what the end that failed first says of it.
 * @param {import('./measures.js').Competitor & {measure: string, with: object}} run
 * @param {number} [limitSeconds]
 * @returns {Promise<{client: any, server: any}>}
 */
export async function runPair(run, limitSeconds = LIMIT_SECONDS) {
  const options = { ...run.options, ...run.with };
  const { over, clear } = limit(limitSeconds);
  const server = end('server', run, options);
  /** @type {ReturnType<typeof end> | undefined} */
  let client;
  const within = (/** @type {Promise<any>} */ promise) => Promise.race([promise, over]);
  try {
    const { ready } = await within(server.said());
    client = end('client', run, { ...options, address: ready });
    const { hello } = await within(client.said());
    server.say({ hello });
    await within(server.said());
    client.say({ go: true });
    const atServer = server.said(); // Its next word is its result, unless it fails meanwhile: then the client may wait for ever.
    const atClient = resultOf(client, server);
    await within(Promise.race([atClient, atServer]));
    server.say({ stop: true });
    const result = { client: await within(atClient), server: await within(atServer) };
    await within(Promise.all([client.ended, server.ended]));
    if (result.client.crc !== undefined && result.client.crc !== result.server.crc) {
      throw new Error('the data that arrived is wrong');
    }
    return result;
  } finally {
    clear();
    client?.kill();
    server.kill();
  }
}

/** What the client says at its end; the server is told of each phase that begins. @param {ReturnType<typeof end>} client @param {ReturnType<typeof end>} server */
async function resultOf(client, server) {
  let line = await client.said();
  for (; line.phase !== undefined; line = await client.said()) server.say(line);
  return line;
}

/** What is kept of a measurement. @param {any} measure @param {{client: any, server: any}} result @returns {import('../aims/samples.js').Sample} */
export function sampleOf(measure, result) {
  const { client, server } = result;
  const ends = [client, server].filter(({ counters }) => counters !== undefined);
  const counted = (/** @type {string} */ name) => ends.reduce((sum, { counters }) => sum + counters[name], 0);
  return {
    value: measure.value(result),
    cpu: cpuPerGib(result, 'counted'),
    ...(client.phases.steady !== undefined && {
      warmUp: rateOf(client, 'warmUp', client.warmUp),
      steady: rateOf(client, 'steady', client.messages),
      steadyCpu: cpuPerGib(result, 'steady'),
    }),
    ...(client.latencyUs !== undefined && { p99: client.latencyUs.p99 }),
    ...(ends.length > 0 && {
      retransmitted: counted('tx_retransmitted'),
      timeouts: counted('local_ack_timeout_err'),
      port: client.port,
    }),
    ...(measure.extra !== undefined && { extra: measure.extra(result) }),
  };
}

/** MB/s of the client in a phase. @param {any} client @param {import('./phases.js').PhaseName} phase @param {number} messages */
const rateOf = ({ messageBytes, phases }, phase, messages) => (messages * messageBytes) / phases[phase].seconds / 1e6;

/**
 * Seconds of processor time, of both ends together, a GiB of data; NaN for what moves none.
 * @param {{client: any, server: any}} result @param {import('./phases.js').PhaseName} phase
 */
function cpuPerGib({ client, server }, phase) {
  if (!(client.messageBytes >= MIB)) return Number.NaN;
  const cpuSeconds = client.phases[phase].cpuSeconds + server.phases[phase].cpuSeconds;
  return (cpuSeconds / (client.messages * client.messageBytes)) * 1024 * MIB;
}
