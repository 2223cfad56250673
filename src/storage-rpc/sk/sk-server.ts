/**
 * Bounds: at most `sessionsMax` sessions, of which one that no connection has, that executes nothing and was silent for
 * longest is evicted; a connection that is silent for `silenceNs` is closed, its session waits.
 */

import type { HostTransport } from '../../cm/rdma-fallback.js';
import type { Clock } from '../../core/clock.js';
import { FairQueue } from '../../core/fair-queue.js';
import { NS_PER_MS } from '../../core/units.js';
import type { BlockDevice } from '../disk/block-device.js';
import { NIL_UUID } from '../disk/disk-identity.js';
import type { DiskLimit } from '../fair/rate-limit.js';
import type { SkIncoming, SkServerChannel } from './channel.js';
import { checksOf, firstBadBlock, NO_CHECKS } from './data-checks.js';
import type { LeaseHolder, LeaseVerdict } from './disk-lease.js';
import { DiskSet } from './disk-set.js';
import { describeDisk, differenceOf } from './expected-disk.js';
import {
  checkInlineWriteBytesMax,
  SK_INLINE_BYTES_MAX,
  SK_IO_BYTES_MAX,
  SK_SLOTS_MAX,
  type SkRequest,
} from './request.js';
import type { SkStatus } from './response.js';
import {
  ANY_DISK,
  type DiskFacts,
  decodeResumeRequest,
  encodeResumeResponse,
  NO_HOLDER,
  type ResumeRequest,
  type ResumeResponse,
} from './resume.js';
import type { DiskSession, ServedDisk } from './served-disk.js';
import type { SkServerCounters } from './server-counters.js';
import { ServerSession } from './server-session.js';

export interface SkServerOptions {
  readonly disks: readonly BlockDevice[];
  readonly clock: Clock;
  readonly bootId: bigint;
  readonly inlineWriteBytesMax?: number;
  readonly limit?: DiskLimit;
  readonly leaseNs?: number;
  readonly firstTerm?: number;
  readonly sessionsMax?: number;
  readonly silenceNs?: number;
  readonly onNotice?: (notice: string) => void;
}

const SESSIONS_MAX = 1024;
const REQUESTS_MAX = 256;
const SILENCE_NS = 60e9;
const LEASE_NS = 10e9;
const EMPTY: Uint8Array = new Uint8Array(0);
/** Unauthenticated peers can name any disks: notices are limited to this number. */
const NOTICES_MAX = 100;

interface ClientConnection {
  readonly acceptedNs: number;
  session: ServerSession | undefined;
}

export class SkServer {
  readonly counters: SkServerCounters = {
    executed: 0,
    cachedReplies: 0,
    attached: 0,
    crcMismatches: 0,
    badSequences: 0,
    fenced: 0,
    protocolErrors: 0,
    wrongDisks: 0,
    takenOver: 0,
    leased: 0,
  };
  readonly #options: SkServerOptions;
  readonly disks: DiskSet;
  /** Memory has been taken before. */
  readonly #turns: FairQueue;
  readonly #sessions = new Map<string, ServerSession>();
  readonly #connections = new Map<SkServerChannel, ClientConnection>();
  readonly #refusedDisks = new Set<string>();
  #cancelSweep: (() => void) | undefined;

  constructor(options: SkServerOptions) {
    this.#options = options;
    const { clock, disks, limit, leaseNs = LEASE_NS, firstTerm = 1 } = options;
    this.disks = new DiskSet(disks, limit, () => ({ leaseNs, firstTerm, graceEndNs: clock.nowNs() + leaseNs }));
    this.#turns = new FairQueue({ clock, requestsMax: REQUESTS_MAX, bytesMax: Number.POSITIVE_INFINITY });
    checkInlineWriteBytesMax(options.inlineWriteBytesMax ?? 0);
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  get connections(): number {
    return this.#connections.size;
  }

  connectionsOver(transport: HostTransport, disk?: ServedDisk): number {
    let count = 0;
    for (const [channel, { session }] of this.#connections) {
      if (channel.transport === transport && (disk === undefined || session?.disk === disk)) count++;
    }
    return count;
  }

  /** Resolves when it has no requests; its clients are notified. */
  async removeDisk(name: string): Promise<BlockDevice> {
    const disk = this.disks.delete(name);
    await disk.remove();
    for (const [id, session] of this.#sessions) if (session.disk === disk) this.#forget(id, session);
    for (const [channel, { session }] of this.#connections) if (session?.disk === disk) this.#drop(channel);
    return disk.device;
  }

  /**
   * Begins a new life of a disk that had another owner: clients have to resume again, and their earlier requests do not
   * reach it.
   */
  async renewDisk(device: BlockDevice): Promise<void> {
    const old = this.disks.renew(device);
    const sessions = [...this.#sessions.values()].filter(({ disk }) => disk === old);
    await Promise.all([...sessions.map((session) => session.fence()), old.remove()]);
  }

  serves(channel: SkServerChannel): boolean {
    return this.#connections.get(channel)?.session !== undefined;
  }

  accept(channel: SkServerChannel): void {
    const connection: ClientConnection = { acceptedNs: this.#options.clock.nowNs(), session: undefined };
    this.#connections.set(channel, connection);
    channel.onFailure = () => this.#drop(channel);
    channel.onRequest = (incoming) => {
      channel.onRequest = ({ release }) => {
        release();
        this.#refuse(channel);
      };
      void this.#resume(channel, connection, incoming);
    };
    this.#armSweep();
  }

  async close(): Promise<void> {
    this.#cancelSweep?.();
    const channels = [...this.#connections.keys()];
    this.#connections.clear();
    for (const channel of channels) await channel.close();
    for (const session of this.#sessions.values()) session.close();
    this.#sessions.clear();
    this.#turns.close();
  }

  async #resume(channel: SkServerChannel, connection: ClientConnection, incoming: SkIncoming): Promise<void> {
    const { request, inline, release } = incoming;
    const body = inline === undefined ? undefined : decodeResumeRequest(inline);
    const checked = body !== undefined && firstBadBlock(inline!, { dataCrc: request.dataCrc, list: EMPTY }) < 0;
    release();
    if (request.op !== 'RESUME' || !checked) {
      this.#refuse(channel);
      return;
    }
    const disk = this.disks.find(body.wanted, request.disk);
    if (disk === undefined) return this.#turnAway(channel, request, 'NO_DISK');
    const facts = factsOf(disk.device);
    const difference = differenceOf(body.disk, facts);
    if (difference !== undefined) {
      this.#noticeWrongDisk(body.disk, facts, difference);
      return this.#turnAway(channel, request, 'WRONG_DISK', this.#answerTo(body, disk));
    }
    if (body.follows && disk.device.notOwner !== undefined) return this.#turnAway(channel, request, 'NOT_OWNER');
    const verdict = await this.#claim(disk, body);
    if (verdict === undefined) return this.#turnAway(channel, request, 'EIO');
    if (disk.isRemoved) return this.#turnAway(channel, request, 'NO_SESSION');
    if (verdict.outcome !== 'granted') {
      if (verdict.outcome === 'leased') this.counters.leased++;
      const answer = this.#answerTo(body, disk, { holder: verdict.holder });
      return this.#turnAway(channel, request, verdict.outcome === 'leased' ? 'LEASED' : 'FENCED', answer);
    }
    const id = Buffer.from(body.sessionId).toString('hex');
    const known = this.#sessions.get(id);
    const session = known ?? this.#newSession(id, disk, request.disk, body);
    if (session === undefined) return this.#turnAway(channel, request, 'NO_SESSION');
    if (session.disk !== disk || session.owner !== body.claim.owner) return this.#refuse(channel);
    disk.lease.join(session.owner, session);
    const older = session.channel;
    if (!(await session.bind(channel, body.epoch))) return this.#turnAway(channel, request, 'STALE_EPOCH');
    if (older !== undefined) this.#connections.delete(older);
    if (!this.#connections.has(channel)) {
      session.unbind(channel);
      return;
    }
    connection.session = session;
    channel.onRequest = (next) => session.handle(channel, next);
    const answer = this.#answerTo(body, disk, { resumed: known !== undefined, term: verdict.term });
    await this.#reply(channel, request, 'OK', answer);
  }

  async #claim(disk: ServedDisk, { claim }: ResumeRequest): Promise<LeaseVerdict<DiskSession> | undefined> {
    const { clock, onNotice } = this.#options;
    const what = disk.name === '' ? 'the disk' : `the disk '${disk.name}'`;
    const who = claim.label || 'a client';
    try {
      return await disk.claim(claim, clock.nowNs(), () => {
        onNotice?.(`${who} takes over ${what}: its last writer was silent`);
      });
    } catch (error) {
      onNotice?.(`refused ${who}: its lease of ${what} cannot be stored: ${(error as Error).message}`);
      return undefined;
    }
  }

  #answerTo(
    { claim, ...body }: ResumeRequest,
    { device, readOnly }: ServedDisk,
    outcome: { readonly resumed?: boolean; readonly term?: number; readonly holder?: LeaseHolder | undefined } = {},
  ): Uint8Array {
    const { inlineWriteBytesMax = SK_INLINE_BYTES_MAX, bootId, clock } = this.#options;
    const { resumed = false, term = 0, holder } = outcome;
    const response: ResumeResponse = {
      bootId,
      disk: factsOf(device),
      blockBytes: device.blockBytes,
      ioBytesMax: SK_IO_BYTES_MAX,
      slots: SK_SLOTS_MAX,
      resumed,
      inlineWriteBytesMax: Math.min(inlineWriteBytesMax, body.inlineWriteBytesMax),
      writeVerifier: device.writeVerifier ?? bootId,
      readOnly: readOnly || claim.access === 'read',
      term,
      holder: holder ?? NO_HOLDER,
      holderMs: holder === undefined ? 0 : Math.max(0, Math.ceil((holder.endsNs - clock.nowNs()) / NS_PER_MS)),
    };
    return encodeResumeResponse(response);
  }

  #noticeWrongDisk(expected: DiskFacts, facts: DiskFacts, difference: string): void {
    this.counters.wrongDisks++;
    const key = `${expected.uuid} ${expected.generation}`;
    if (this.#refusedDisks.has(key) || this.#refusedDisks.size >= NOTICES_MAX) return;
    this.#refusedDisks.add(key);
    this.#options.onNotice?.(
      `refused a client of ${describeDisk(expected)}: this server has ${describeDisk(facts)}${difference}`,
    );
  }

  async #turnAway(channel: SkServerChannel, request: SkRequest, status: SkStatus, body = EMPTY): Promise<void> {
    await this.#reply(channel, request, status, body);
    this.#drop(channel);
  }

  #reply(channel: SkServerChannel, request: SkRequest, status: SkStatus, bytes: Uint8Array): Promise<void> {
    const { slot, slotSeq } = request;
    const { dataCrc } = bytes.length === 0 ? NO_CHECKS : checksOf(bytes);
    const response = { status, flags: 0, slot, slotSeq, dataCrc, moved: bytes.length, serverTimeUs: 0 };
    const data = bytes.length === 0 ? undefined : { bytes, release: () => {} };
    return channel.reply(request, response, EMPTY, data);
  }

  #refuse(channel: SkServerChannel): void {
    this.counters.protocolErrors++;
    this.#drop(channel);
  }

  #drop(channel: SkServerChannel): void {
    this.#connections.get(channel)?.session?.unbind(channel);
    this.#connections.delete(channel);
    channel.onRequest = ({ release }) => release();
    // What a connection cannot release on close, its device releases.
    void channel.close().catch(() => {});
  }

  #newSession(id: string, disk: ServedDisk, diskNumber: number, body: ResumeRequest): ServerSession | undefined {
    const { claim, follows } = body;
    const { sessionsMax = SESSIONS_MAX, clock } = this.#options;
    if (this.#sessions.size >= sessionsMax && !this.#evictOne()) return undefined;
    const session: ServerSession = new ServerSession({
      disk,
      diskNumber,
      owner: claim.owner,
      readOnly: disk.readOnly || claim.access === 'read',
      follows,
      turns: this.#turns.join(),
      clock,
      counters: this.counters,
      onFenced: () => {
        this.#forget(id, session);
        for (const [channel, other] of this.#connections) {
          if (other.session === session) this.#connections.delete(channel);
        }
      },
      onClosed: () => {
        disk.release(session);
        this.#forget(id, session);
      },
    });
    this.#sessions.set(id, session);
    return session;
  }

  #evictOne(): boolean {
    const unused = [...this.#sessions].filter(([, { isIdle }]) => isIdle);
    if (unused.length === 0) return false;
    const [id, session] = unused.reduce((a, b) => (a[1].lastHeardNs <= b[1].lastHeardNs ? a : b));
    this.#forget(id, session);
    return true;
  }

  #forget(id: string, session: ServerSession): void {
    session.disk.lease.forget(session.owner, session);
    session.close();
    this.#sessions.delete(id);
  }

  /** Closes connections of clients that are gone without a word. */
  #armSweep(): void {
    if (this.#cancelSweep !== undefined || this.#connections.size === 0) return;
    const { clock, silenceNs = SILENCE_NS } = this.#options;
    this.#cancelSweep = clock.wakeAt(clock.nowNs() + silenceNs / 2, () => {
      this.#cancelSweep = undefined;
      const now = clock.nowNs();
      for (const [channel, { session, acceptedNs }] of this.#connections) {
        if (now - (session?.lastHeardNs ?? acceptedNs) >= silenceNs) this.#drop(channel);
      }
      this.#armSweep();
    });
  }
}

function factsOf({ identity, sizeBytes }: BlockDevice): DiskFacts {
  const { uuid = NIL_UUID, generation = 0, name = '', openings = [] } = identity ?? ANY_DISK;
  return { uuid, generation, name, sizeBytes, openings };
}
