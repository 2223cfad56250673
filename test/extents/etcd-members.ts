/** Members of an etcd as processes of this machine. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';

/** Why there is no etcd to test with; undefined: there is one. */
export const WHY_NO_ETCD =
  spawnSync('etcd', ['--version']).status === 0 ? undefined : 'etcd is not installed (apt-get install etcd-server)';

/** A port where nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** One etcd. */
export class EtcdMembers {
  readonly endpoints: string[] = [];
  readonly #processes: ChildProcess[] = [];

  /** One member that wants certificates, as `makeCertificates` has made them. It may be reached some time later. */
  static async startSecure(folder: string, certificates: string): Promise<EtcdMembers> {
    const members = new EtcdMembers();
    const [client, peer] = [`https://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
    members.endpoints.push(client);
    const urls = ['--listen-client-urls', client, '--advertise-client-urls', client];
    const peers = [
      '--listen-peer-urls',
      peer,
      '--initial-advertise-peer-urls',
      peer,
      '--initial-cluster',
      `m0=${peer}`,
    ];
    const file = (name: string) => join(certificates, `${name}.pem`);
    const own = ['--cert-file', file('server-cert'), '--key-file', file('server-key')];
    const theirs = ['--client-cert-auth', '--trusted-ca-file', file('ca-cert')];
    const of = ['--name', 'm0', '--data-dir', join(folder, 'm0'), ...urls, ...peers, ...own, ...theirs];
    members.#processes.push(spawn('etcd', of, { stdio: 'ignore' }));
    return members;
  }

  static async start(folder: string, count: number): Promise<EtcdMembers> {
    const members = new EtcdMembers();
    const peers: string[] = [];
    for (let k = 0; k < count; k++) {
      members.endpoints.push(`http://127.0.0.1:${await freePort()}`);
      peers.push(`http://127.0.0.1:${await freePort()}`);
    }
    const cluster = peers.map((peer, k) => `m${k}=${peer}`).join();
    members.endpoints.forEach((client, k) => {
      const urls = [
        ...['--listen-client-urls', client, '--advertise-client-urls', client],
        ...['--listen-peer-urls', peers[k], '--initial-advertise-peer-urls', peers[k]],
      ];
      const of = ['--name', `m${k}`, '--data-dir', join(folder, `m${k}`), '--initial-cluster', cluster];
      members.#processes.push(spawn('etcd', [...of, ...urls], { stdio: 'ignore' }));
    });
    await eventually(async () => (await members.leader()) !== undefined, { limitMs: 60_000, everyMs: 50 });
    return members;
  }

  /** Which one leads, as the members that answer say. */
  async leader(): Promise<number | undefined> {
    const told = await Promise.all(
      this.endpoints.map(async (endpoint) => {
        try {
          const response = await fetch(`${endpoint}/v3/maintenance/status`, { method: 'POST', body: '{}' });
          return (await response.json()) as { leader?: string; header: { member_id: string } };
        } catch {
          return undefined;
        }
      }),
    );
    const leader = told.find((one) => one?.leader !== undefined && one.leader !== '0')?.leader;
    const found = told.findIndex((one) => one !== undefined && one.header.member_id === leader);
    return found < 0 ? undefined : found;
  }

  async kill(member: number): Promise<void> {
    const process = this.#processes[member];
    if (process.exitCode !== null || process.signalCode !== null) return;
    process.kill('SIGKILL');
    await once(process, 'exit');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((_, member) => this.kill(member)));
  }
}
