/** Members of an etcd as processes of this machine. */

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';

/** Why there is no etcd to test with; undefined: there is one. */
export const WHY_NO_ETCD =
  spawnSync('etcd', ['--version']).status === 0 ? undefined : 'etcd is not installed (apt-get install etcd-server)';

const ETCDCTL_ENV = { ...process.env, ETCDCTL_API: '3' };

/** Why no snapshot can be made and restored. */
export const WHY_NO_ETCDCTL =
  WHY_NO_ETCD ??
  (spawnSync('etcdctl', ['version'], { env: ETCDCTL_ENV }).status === 0
    ? undefined
    : 'etcdctl is not installed (apt-get install etcd-client)');

/** How long a member may take to say how it is, milliseconds. */
const STATUS_MS = 2_000;

interface MemberStatus {
  readonly leader?: string;
  readonly header: { readonly member_id: string };
}

class EndedMember extends Error {}

function etcdctl(...args: string[]): void {
  execFileSync('etcdctl', args, { env: ETCDCTL_ENV, stdio: 'pipe' });
}

/** One etcd. */
export class EtcdMembers {
  readonly endpoints: string[] = [];
  readonly #processes: ChildProcess[] = [];
  /** Of each member, without its folder. */
  readonly #args: Array<readonly string[]> = [];

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
    members.#start(0, join(folder, 'm0'), ['--name', 'm0', ...urls, ...peers, ...own, ...theirs]);
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
      members.#start(k, join(folder, `m${k}`), ['--name', `m${k}`, '--initial-cluster', cluster, ...urls]);
    });
    try {
      await members.#whole();
      return members;
    } catch (error) {
      await members.stop();
      if (!(error instanceof EndedMember) || attempts === 1) throw error;
      rmSync(folder, { recursive: true, force: true });
      return EtcdMembers.start(folder, count, attempts - 1);
    }
  }

  #start(member: number, dataDir: string, args: readonly string[]): void {
    this.#args[member] = args;
    this.#processes[member] = spawn('etcd', ['--data-dir', dataDir, ...args], { stdio: 'ignore' });
  }

  /** Writes a snapshot of the first member to a file. */
  snapshot(file: string): void {
    etcdctl('--endpoints', this.endpoints[0], 'snapshot', 'save', file);
  }

  /** Kills the only member, and starts it with what a snapshot has, in a new folder; without a snapshot it is empty. */
  async restore(dataDir: string, snapshot?: string): Promise<void> {
    await this.kill(0);
    if (snapshot !== undefined) etcdctl('snapshot', 'restore', snapshot, '--data-dir', dataDir);
    this.#start(0, dataDir, this.#args[0]);
    await this.#whole();
  }

  #whole(): Promise<void> {
    return eventually(() => this.#isWhole(), { limitMs: 60_000, everyMs: 50 });
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
    const one = this.#processes[member];
    if (one.exitCode !== null || one.signalCode !== null) return;
    one.kill('SIGKILL');
    await once(one, 'exit');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((_, member) => this.kill(member)));
  }
}
