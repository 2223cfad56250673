/**
 * Who may write to a disk. A client has a lease as long as it is heard; while it has, no other client may write, unless both share the disk. A
 * lease of a client that fell silent can be taken over. Each change of writers begins a new term: who comes back with an older one is fenced,
 * because what it still has to send, or keeps in a cache, is older than what others have written (the fencing token of Chubby, and the
 * persistent reservations of SPC-5). What the next life of a server has to know of it is one record, which the disk keeps. Sans-IO.
 */

import type { LeaseRecord } from '../disk/lease-store.js';

/** What a client wants to do: write alone, write together with others that share the disk, or only read. */
export type DiskAccess = 'write' | 'shared' | 'read';
/** All of them, in the order of their codes. */
export const DISK_ACCESSES: readonly DiskAccess[] = ['write', 'shared', 'read'];

/** What a client says when it asks for a disk. */
export interface LeaseClaim {
  /** UUID of the client; all its sessions have the same. */
  readonly owner: string;
  /** What it wants to do. */
  readonly access: DiskAccess;
  /** Term of the lease that it had; 0: it had none. */
  readonly term: number;
  /** It can wait: who had the disk before the server was started goes first. */
  readonly isPatient: boolean;
  /** For people: who this is. */
  readonly label: string;
}

/** A session of a client, as far as leases are concerned. */
export interface LeasedSession {
  /** When it last had a connection, or was heard. */
  readonly lastHeardNs: number;
  /** Whether it has a connection. */
  readonly isConnected: boolean;
}

/** Somebody else who has a lease. */
export interface LeaseHolder {
  /** For people: who this is. */
  readonly label: string;
  /** Whether it has a connection. */
  readonly isConnected: boolean;
  /** When its lease ends unless it is heard again. */
  readonly endsNs: number;
}

/** The answer to a claim. */
export type LeaseVerdict<S> =
  /** `evicted`: sessions of clients that lost theirs by this. */
  | { readonly outcome: 'granted'; readonly term: number; readonly evicted: readonly S[] }
  /** Somebody else has it. */
  | { readonly outcome: 'leased'; readonly holder: LeaseHolder }
  /** Others have written since. */
  | { readonly outcome: 'fenced'; readonly holder: LeaseHolder | undefined };

interface Holder<S> extends Pick<LeaseClaim, 'access' | 'label'> {
  readonly sessions: Set<S>;
  heardNs: number;
}

/** Terms of the leases of a server. */
export interface LeaseTerms {
  /** How long the lease of a silent client lasts. */
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

/** The leases of one disk. */
export class DiskLease<S extends LeasedSession> {
  readonly #terms: LeaseTerms;
  /** By owner. Those that only read have none. */
  readonly #holders = new Map<string, Holder<S>>();
  /** 0 before the first lease. */
  #term = 0;
  /** Who has the term: an owner, or all that share the disk. */
  #writer = '';
  /** For people: who that is, unless they share the disk. */
  #label = '';

  /** `last`: what was stored in an earlier life of the server. Who had the lease then counts as heard when this life began. */
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

  /** What the next life of the server has to know; undefined before the first lease. */
  get record(): LeaseRecord | undefined {
    if (this.#term === 0) return undefined;
    const isShared = this.#writer === SHARED;
    const isHeld = isShared ? this.#holders.size > 0 : this.#holders.has(this.#writer);
    if (isShared) return { term: this.#term, owner: undefined, label: SHARED_LABEL, isHeld };
    return { term: this.#term, owner: this.#writer, label: this.#label, isHeld };
  }

  /** Those that have a lease now. */
  holders(nowNs: number): Array<LeaseHolder & Pick<LeaseClaim, 'access'>> {
    return [...this.#holders.values()]
      .filter((holder) => this.#endOf(holder) > nowNs)
      .map((holder) => ({ access: holder.access, ...this.#described(holder) }));
  }

  /** Asks for the disk. What is granted counts as heard now. */
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
      const before = { label: 'whoever had it before the server was started', isConnected: false, endsNs: graceEndNs };
      return { outcome: 'leased', holder: before };
    }
    const writer = access === SHARED ? SHARED : owner;
    // A server that was started anew takes the term of the first who comes back, and begins later ones above all of its earlier lives.
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

  /** A session of an owner whose claim was granted: the lease lasts as long as any of them is heard. */
  join(owner: string, session: S): void {
    this.#holders.get(owner)?.sessions.add(session);
  }

  /** The server forgets the session; the lease lasts on for its time. */
  forget(owner: string, session: S): void {
    const holder = this.#holders.get(owner);
    if (holder?.sessions.delete(session) === true) holder.heardNs = Math.max(holder.heardNs, session.lastHeardNs);
  }

  /** The client has closed the session: with the last one its lease ends. */
  release(owner: string, session: S): void {
    const holder = this.#holders.get(owner);
    if (holder?.sessions.delete(session) === true && holder.sessions.size === 0) this.#holders.delete(owner);
  }

  /** Any number of clients may come and go: the first of those without a session is forgotten, and fenced if others write before it comes back. */
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
