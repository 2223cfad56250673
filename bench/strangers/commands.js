// @ts-check
/** What strangers do to a command that waits for its peer. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { IpAddress } from '../../build/src/packet/index.js';
import { within } from './calls.js';

const HOST = '127.0.8.9';
const CLIENT = '127.0.8.10';
const PORT = 18599;

/** @param {string} dist @param {string[]} args */
function run(dist, args) {
  const child = spawn(process.execPath, [join(dist, 'cli/main.js'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const program = { child, text: '', ended: once(child, 'close').then(([code]) => code) };
  child.stdout.on('data', (text) => (program.text += text));
  child.stderr.on('data', (text) => (program.text += text));
  return program;
}

/** @param {string} text */
async function visit(text) {
  const socket = connect({ host: HOST, port: PORT, localAddress: '127.0.8.66' }).on('error', () => {});
  socket.on('connect', () => socket.end(text));
  await within(
    once(socket, 'close').catch(() => {}),
    1500,
    undefined,
  );
  socket.destroy();
}

const window = JSON.stringify({
  ...{ rocev2: 1, gid: IpAddress.parse('127.0.8.66').gidHex, udpPort: 4791, qpn: 77, psn: 1, mtu: 1024 },
  ...{ recovery: 'go-back-n', receiveBudgetPackets: 128, maxDestRdAtomic: 16, purpose: { tool: 'window' } },
});

export const COMMAND_ATTACKS = [
  {
    name: 'bw-strangers',
    title: 'a port scanner, a web browser and the client of another command at a waiting `rocev2 bw`',
    from: 'anywhere',
    /** @param {{dist: string}} options */
    async runAlone({ dist }) {
      const server = run(dist, ['bw', 'write', '--bind', HOST, '-p', String(PORT)]);
      await delay(1500);
      await visit('');
      await visit('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await visit(`${window}\n`);
      await delay(300);
      const isLeft = server.child.exitCode !== null;
      const client = run(dist, ['bw', 'write', HOST, '--bind', CLIENT, '-p', String(PORT), '-n', '50']);
      const code = await within(client.ended, 8000, 'none');
      server.child.kill();
      client.child.kill();
      const lines = server.text.trim().split('\n');
      const text = isLeft
        ? `the server ended with code ${server.child.exitCode}: ${lines.at(-1)}`
        : `the server waits on; exit code of the honest client: ${code}`;
      return {
        name: this.name,
        title: this.title,
        from: this.from,
        won: code !== 0,
        text,
        lives: isLeft ? 'no' : 'yes',
      };
    },
  },
];
