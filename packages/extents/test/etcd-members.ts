/** Members of an etcd as processes of this machine. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';

/** Why there is no etcd to test with; undefined: there is one. */
export const WHY_NO_ETCD =
  spawnSync('etcd', ['--version']).status === 0 ? undefined : 'etcd is not installed (apt-get install etcd-server)';

/** How long a member may take to say how it is, milliseconds. */
const STATUS_MS = 2_000;

interface MemberStatus {
  readonly leader?: string;
  readonly header: { readonly member_id: string };
}

class EndedMember extends Error {}

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

  /** Members that all follow one leader. Somebody may take a port before a member has it: then all begin anew, with other ports. */
  static async start(folder: string, count: number, attempts = 3): Promise<EtcdMembers> {
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
    try {
      await eventually(() => members.#isWhole(), { limitMs: 60_000, everyMs: 50 });
      return members;
    } catch (error) {
      await members.stop();
      if (!(error instanceof EndedMember) || attempts === 1) throw error;
      rmSync(folder, { recursive: true, force: true });
      return EtcdMembers.start(folder, count, attempts - 1);
    }
  }

  /** Whether all members follow one leader: what is tested needs all of them at first. Throws if one has ended by itself. */
  async #isWhole(): Promise<boolean> {
    const dead = this.#processes.findIndex(({ exitCode }) => exitCode !== null);
    if (dead >= 0) throw new EndedMember(`member m${dead} of etcd ended with ${this.#processes[dead].exitCode}`);
    const leaders = (await this.#statuses()).map((one) => one?.leader);
    return leaders.every((one) => one !== undefined && one !== '0' && one === leaders[0]);
  }

  /** Which one leads, as the members that answer say. */
  async leader(): Promise<number | undefined> {
    const told = await this.#statuses();
    const leader = told.find((one) => one?.leader !== undefined && one.leader !== '0')?.leader;
    const found = told.findIndex((one) => one !== undefined && one.header.member_id === leader);
    return found < 0 ? undefined : found;
  }

  /** What each says of itself; undefined: nothing. */
  #statuses(): Promise<Array<MemberStatus | undefined>> {
    const options = () => ({ method: 'POST', body: '{}', signal: AbortSignal.timeout(STATUS_MS) });
    const ask = async (endpoint: string) => {
      try {
        const response = await fetch(`${endpoint}/v3/maintenance/status`, options());
        return (await response.json()) as MemberStatus;
      } catch {
        return undefined;
      }
    };
    return Promise.all(this.endpoints.map(ask));
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
