// @ts-check
/**
 * Secure mode beside a tunnel: `rocev2 bw write` between two network namespaces, over a virtual cable with plain packets, with protected packets, and with plain packets
 * through WireGuard: by the kernel where it has the module, else by `wireguard-go`. The ways take turns. Needs root, `ip`, `wg`; it leaves nothing behind.
 *
 *   node bench/secure-tunnel.js [--reps 3] [--seconds 1] [--mtu 9000] [--json]
 */

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const MAIN = fileURLToPath(new URL('../packages/cli/bin/rocev2.js', import.meta.url));
const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '1' },
    mtu: { type: 'string', default: '9000' },
    json: { type: 'boolean', default: false },
  },
});
const median = (/** @type {number[]} */ list) => [...list].sort((x, y) => x - y)[list.length >> 1];

/** What WireGuard takes of a packet over IPv4 and IPv6 (its own recommendation). */
const TUNNEL_BYTES = 80;
/** Of each end; the names of tunnels are those of sockets in a folder that all namespaces share. */
const ENDS = [
  { ns: `rocev2-a-${process.pid}`, device: `wga${process.pid}`, cable: '10.81.0.1', tunnel: '10.82.0.1' },
  { ns: `rocev2-b-${process.pid}`, device: `wgb${process.pid}`, cable: '10.81.0.2', tunnel: '10.82.0.2' },
];
const [A, B] = ENDS;
const run = (/** @type {string} */ command, /** @type {string[]} */ ...args) =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const ip = (/** @type {string} */ line) => run('ip', ...line.split(' '));
const folder = mkdtempSync(join(tmpdir(), 'rocev2-tunnel-'));
/** @type {import('node:child_process').ChildProcess[]} */
const children = [];

function lay() {
  for (const { ns } of ENDS) {
    ip(`netns add ${ns}`);
    ip(`-n ${ns} link set lo up`);
  }
  ip(`link add cable netns ${A.ns} type veth peer name cable netns ${B.ns}`);
  for (const { ns, cable } of ENDS) {
    ip(`-n ${ns} address add ${cable}/24 dev cable`);
    ip(`-n ${ns} link set cable mtu ${values.mtu} up`);
  }
}

/** Which WireGuard it is. */
async function dig() {
  const keys = ENDS.map(() => run('wg', 'genkey').trim());
  const publicKeys = keys.map((key) => spawnSync('wg', ['pubkey'], { input: key, encoding: 'utf8' }).stdout.trim());
  const isInKernel = spawnSync('ip', ['-n', A.ns, 'link', 'add', A.device, 'type', 'wireguard']).status === 0;
  for (const [i, { ns, device, tunnel }] of ENDS.entries()) {
    if (!isInKernel) {
      const child = spawn('ip', ['netns', 'exec', ns, 'wireguard-go', '-f', device], {
        stdio: 'ignore',
        env: { ...process.env, WG_PROCESS_FOREGROUND: '1' },
      });
      children.push(child);
      while (spawnSync('ip', ['-n', ns, 'link', 'show', device]).status !== 0) {
        if (child.exitCode !== null) throw new Error(`wireguard-go ends with ${child.exitCode}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    } else if (i > 0) ip(`-n ${ns} link add ${device} type wireguard`);
    const file = join(folder, `key${i}`);
    writeFileSync(file, keys[i], { mode: 0o600 });
    const other = ENDS[1 - i];
    const peer = ['peer', publicKeys[1 - i], 'allowed-ips', `${other.tunnel}/32`, 'endpoint', `${other.cable}:51820`];
    run('ip', 'netns', 'exec', ns, 'wg', 'set', device, 'private-key', file, 'listen-port', '51820', ...peer);
    ip(`-n ${ns} address add ${tunnel}/24 dev ${device}`);
    ip(`-n ${ns} link set ${device} mtu ${Number(values.mtu) - TUNNEL_BYTES} up`);
  }
  return isInKernel ? 'the kernel' : 'wireguard-go';
}

/** Seconds of processor time that the tunnel's programs have used. */
const tunnelSeconds = () =>
  children.reduce((sum, { pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);

/** Gb/s of one run. */
async function measure(/** @type {'cable' | 'tunnel'} */ by, /** @type {string[]} */ ...more) {
  const at = (/** @type {string} */ ns, /** @type {string[]} */ ...args) =>
    spawn('ip', [
      'netns',
      'exec',
      ns,
      process.execPath,
      MAIN,
      'bw',
      'write',
      '--io',
      'mmsg',
      '-s',
      '1MiB',
      '-t',
      '4',
      '-p',
      '18600',
      ...more,
      ...args,
    ]);
  const server = at(B.ns, '--bind', B[by]);
  await new Promise((resolve) =>
    server.stderr.on('data', (text) => String(text).includes('waiting for') && resolve(undefined)),
  );
  const before = tunnelSeconds();
  const client = at(A.ns, B[by], '--bind', A[by], '-D', `${values.seconds}s`, '--json');
  let [text, told] = ['', ''];
  client.stdout.on('data', (more) => {
    text += more;
  });
  client.stderr.on('data', (more) => {
    told += more;
  });
  const [code] = await once(client, 'close');
  if (server.exitCode === null) await once(server, 'exit');
  if (code !== 0) throw new Error(told);
  const { goodputBps } = JSON.parse(text);
  return { gbps: goodputBps / 1e9, tunnelSeconds: tunnelSeconds() - before };
}

try {
  lay();
  const wireguard = await dig();
  const psk = join(folder, 'keys.psk');
  writeFileSync(psk, `bench:${'3c'.repeat(32)}\n`, { mode: 0o600 });
  /** @type {Record<string, () => ReturnType<typeof measure>>} */
  const ways = {
    plain: () => measure('cable'),
    protected: () => measure('cable', '--psk', psk),
    [`plain, through WireGuard by ${wireguard}`]: () => measure('tunnel'),
  };
  /** @type {Record<string, Array<{gbps: number, tunnelSeconds: number}>>} */
  const runs = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  for (let rep = 0; rep < Number(values.reps); rep++)
    for (const [way, once] of Object.entries(ways)) runs[way].push(await once());
  const rows = Object.entries(runs).map(([way, list]) => ({
    way,
    gbps: median(list.map(({ gbps }) => gbps)),
    ofPlain: median(list.map(({ gbps }, i) => gbps / runs['plain'][i].gbps)),
    tunnelSeconds: median(list.map(({ tunnelSeconds }) => tunnelSeconds)),
  }));
  if (values.json) console.log(JSON.stringify(rows));
  else {
    for (const { way, gbps, ofPlain, tunnelSeconds } of rows) {
      console.log(
        `${way.padEnd(42)} ${gbps.toFixed(2)} Gb/s  ${ofPlain.toFixed(2)} of plain  ${tunnelSeconds.toFixed(1)} s of the tunnel's programs`,
      );
    }
  }
} finally {
  for (const child of children) child.kill();
  for (const { ns } of ENDS) spawnSync('ip', ['netns', 'delete', ns]);
  rmSync(folder, { recursive: true });
}
