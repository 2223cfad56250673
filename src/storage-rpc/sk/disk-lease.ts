/**
 * Write access to a disk. A client holds its lease while it is active; no other client may write unless both share the
 * disk, and a silent client's lease can be taken over. Each change of writers begins a new term; a client with an older
 * term is fenced (the fencing token of Chubby, the persistent reservations of SPC-5). Without I/O.
 */

import type { LeaseRecord } from '../disk/lease-store.js';

/** The access that a client requests: write alone, write together with others that share the disk, or only read. */
export type DiskAccess = 'write' | 'shared' | 'read';
export const DISK_ACCESSES: readonly DiskAccess[] = ['write', 'shared', 'read'];

export interface LeaseClaim {
  readonly owner: string;
  readonly access: DiskAccess;
  readonly term: number;
  /** It can wait: a client that had the disk before the server was started goes first. */
  readonly isPatient: boolean;
  readonly label: string;
}

export interface LeasedSession {
  readonly lastHeardNs: number;
  readonly isConnected: boolean;
}

/** Another client that has a lease. */
export interface LeaseHolder {
  /** For people: the name of the client. */
  readonly label: string;
  /** Whether it has a connection. */
  readonly isConnected: boolean;
  /** When its lease ends unless it is renewed. */
  readonly endsNs: number;
}

export type LeaseVerdict<S> =
  | { readonly outcome: 'granted'; readonly term: number; readonly evicted: readonly S[] }
  | { readonly outcome: 'leased'; readonly holder: LeaseHolder }
  | { readonly outcome: 'fenced'; readonly holder: LeaseHolder | undefined };

interface Holder<S> extends Pick<LeaseClaim, 'access' | 'label'> {
  readonly sessions: Set<S>;
  heardNs: number;
}

export interface LeaseTerms {
  readonly leaseNs: number;
  /** First term that this life of the server begins: above those of earlier lives, 1 to 2^32 - 1. */
  readonly firstTerm: number;
  /** Until then, `leaseNs` after the start, those who had a lease in an earlier life of the server go first. */
  readonly graceEndNs: number;
}

const SHARED = 'shared';
const SHARED_LABEL = 'clients that share it';
/** Clients that share a disk and are remembered without a session, with the others. */
const HOLDERS_MAX = 1024;

export class DiskLease<S extends LeasedSession> {
  readonly #terms: LeaseTerms;
  /** Those that only read have none. */
  readonly #holders = new Map<string, Holder<S>>();
  #term = 0;
  #writer = '';
  #label = '';

  /** The previous holder counts as active at the start of this life. */
  constructor(terms: LeaseTerms, last?: LeaseRecord) {
    this.#terms = terms;
    if (last === undefined) return;
    const { term, owner = SHARED, label, isHeld } = last;
    this.#term = term;
    this.#writer = owner;
    this.#label = label;
    if (!isHeld) return;
    const heardNs = terms.graceEndNs - terms.leaseNs;
    this.#holders.set(owner, { access: owner === SHARED ? SHARED : 'write', label, sessions: new Set(), heardNs });
  }

  get record(): LeaseRecord | undefined {
    if (this.#term === 0) return undefined;
    const isShared = this.#writer === SHARED;
    const isHeld = isShared ? this.#holders.size > 0 : this.#holders.has(this.#writer);
    if (isShared) return { term: this.#term, owner: undefined, label: SHARED_LABEL, isHeld };
    return { term: this.#term, owner: this.#writer, label: this.#label, isHeld };
  }

  holders(nowNs: number): Array<LeaseHolder & Pick<LeaseClaim, 'access'>> {
    return [...this.#holders.values()]
      .filter((holder) => this.#endOf(holder) > nowNs)
      .map((holder) => ({ access: holder.access, ...this.#described(holder) }));
  }

  claim({ owner, access, term, isPatient, label }: LeaseClaim, nowNs: number): LeaseVerdict<S> {
    if (access === 'read') return { outcome: 'granted', term: 0, evicted: [] };
    const others = [...this.#holders].filter(
      ([other, holder]) => other !== owner && !(access === SHARED && holder.access === SHARED),
    );
    const alive = others.find(([, holder]) => this.#endOf(holder) > nowNs)?.[1];
    const holder = alive && this.#described(alive);
    if (term !== 0 && (term < this.#term || holder !== undefined)) return { outcome: 'fenced', holder };
    if (holder !== undefined) return { outcome: 'leased', holder };
    const { graceEndNs } = this.#terms;
    if (isPatient && this.#term === 0 && term === 0 && nowNs < graceEndNs) {
      const before = { label: 'a client from before the start of the server', isConnected: false, endsNs: graceEndNs };
      return { outcome: 'leased', holder: before };
    }
    const writer = access === SHARED ? SHARED : owner;
    // A restarted server adopts the term of the first client that returns; later terms are above those of all its
    // earlier lives.
    if (term !== 0) this.#term = term;
    else if (writer !== this.#writer) this.#term = Math.max(this.#term + 1, this.#terms.firstTerm);
    this.#writer = writer;
    this.#label = label;
    for (const [other] of others) this.#holders.delete(other);
    const known = this.#holders.get(owner);
    if (known === undefined) {
      this.#makeRoom();
      this.#holders.set(owner, { access, label, sessions: new Set(), heardNs: nowNs });
    } else known.heardNs = nowNs;
    return { outcome: 'granted', term: this.#term, evicted: others.flatMap(([, { sessions }]) => [...sessions]) };
  }

  join(owner: string, session: S): void {
    this.#holders.get(owner)?.sessions.add(session);
  }

  forget(owner: string, session: S): void {
    const holder = this.#holders.get(owner);
    if (holder?.sessions.delete(session) === true) holder.heardNs = Math.max(holder.heardNs, session.lastHeardNs);
  }

  release(owner: string, session: S): void {
    const holder = this.#holders.get(owner);
    if (holder?.sessions.delete(session) === true && holder.sessions.size === 0) this.#holders.delete(owner);
  }

  /**
   * Any number of clients may come and go: the first of those without a session is dropped, and fenced if others write
   * before it reconnects.
   */
  #makeRoom(): void {
    if (this.#holders.size < HOLDERS_MAX) return;
    for (const [owner, { sessions }] of this.#holders) {
      if (sessions.size > 0) continue;
      this.#holders.delete(owner);
      return;
    }
  }

  #endOf({ sessions, heardNs }: Holder<S>): number {
    return Math.max(heardNs, ...[...sessions].map(({ lastHeardNs }) => lastHeardNs)) + this.#terms.leaseNs;
  }

  #described(holder: Holder<S>): LeaseHolder {
    const isConnected = [...holder.sessions].some((session) => session.isConnected);
    return { label: holder.label, isConnected, endsNs: this.#endOf(holder) };
  }
}
